/* modules/tls over a socket pair. The first byte says what the client does: it sends the rest as it
 * is; or it shakes hands as it should, sends the rest in records, and then raw. The second byte is
 * how much is read, or sent, at a time. What was sent in records is what is read; a session that
 * would block holds nothing, and one that failed stays so. The certificate is made when the first
 * input comes. */
#include "base/check.h"
#include "module.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_BYTES  ((size_t)60000) /* a socket takes so many at once */
#define MOST_ROUNDS 100000u

static void *context;
static SSL_CTX *client_context;

static void make_contexts(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_set_version(cert, 2);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
    X509_set_pubkey(cert, key);
    CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
    BIO *certs = BIO_new(BIO_s_mem()), *keys = BIO_new(BIO_s_mem());
    CHECK(PEM_write_bio_X509(certs, cert) == 1);
    CHECK(PEM_write_bio_PrivateKey(keys, key, NULL, NULL, 0, NULL, NULL) == 1);
    char *cert_text, *key_text;
    long cert_len = BIO_get_mem_data(certs, &cert_text);
    long key_len = BIO_get_mem_data(keys, &key_text);
    struct tls_abi_setup s = {.cert = cert_text,
                              .cert_len = (size_t)cert_len,
                              .key = key_text,
                              .key_len = (size_t)key_len,
                              .protocols = "\x02h2\x08http/1.1",
                              .protocols_len = 12};
    context = context_new(&s);
    CHECK(context);
    BIO_free(certs);
    BIO_free(keys);
    X509_free(cert);
    EVP_PKEY_free(key);
    client_context = SSL_CTX_new(TLS_client_method());
    CHECK(client_context);
}

/* Reads until the session would block; false when it has ended or failed. */
static bool drain(struct tls_abi_session *s, size_t at_a_time, uint8_t *to, size_t room,
                  size_t *ret_len)
{
    uint8_t spare[4096];
    for (unsigned round = 0; round < MOST_ROUNDS; round++) {
        size_t n = at_a_time < sizeof(spare) ? at_a_time : sizeof(spare);
        ssize_t got = session_read(s, spare, n);
        if (got == -1) {
            CHECK(!s->holds);
            return true;
        }
        if (got <= 0) {
            CHECK(got == 0 || session_read(s, spare, n) == -2);
            return false;
        }
        CHECK((size_t)got <= n && (size_t)got <= room - *ret_len);
        memcpy(to + *ret_len, spare, (size_t)got);
        *ret_len += (size_t)got;
        CHECK((size_t)got == n || !s->holds);
    }
    CHECK(false);
    return false;
}

static void put_raw(int fd, const uint8_t *data, size_t size)
{
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            return;
        data += n;
        size -= (size_t)n;
    }
}

/* As it should: the handshake, and the bytes in records. false: it did not come to that. */
static void speak(struct tls_abi_session *s, int fd, const uint8_t *data, size_t size, size_t step,
                  uint8_t *got, size_t *ret_len)
{
    SSL *ssl = SSL_new(client_context);
    SSL_set_fd(ssl, fd);
    SSL_set_connect_state(ssl);
    for (int i = 0; i < 20 && SSL_do_handshake(ssl) != 1; i++)
        CHECK(drain(s, step, got, size, ret_len));
    CHECK(drain(s, step, got, size, ret_len));
    CHECK(s->established);
    for (size_t at = 0; at < size;) {
        size_t n = size - at < step ? size - at : step, put;
        CHECK(SSL_write_ex(ssl, data + at, n, &put) == 1);
        at += put;
        CHECK(drain(s, step, got, size, ret_len));
    }
    CHECK(*ret_len == size && memcmp(got, data, size) == 0);
    struct iovec pieces[2] = {{(void *)(uintptr_t)data, size / 2},
                              {(void *)(uintptr_t)(data + size / 2), size - size / 2}};
    CHECK(session_write(s, pieces, 2) == (ssize_t)size);
    uint8_t *back = malloc(size + 1);
    size_t len = 0, n;
    while (len < size && SSL_read_ex(ssl, back + len, size - len, &n) == 1)
        len += n;
    CHECK(len == size && memcmp(back, data, size) == 0);
    free(back);
    SSL_free(ssl);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > MOST_BYTES)
        return 0;
    if (!context)
        make_contexts();
    int fds[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    struct tls_abi_session *s = session_new(context, fds[0]);
    size_t step = (size_t)data[1] * 16 + 1, len = 0;
    bool speaks = data[0] & 1;
    data += 2;
    size -= 2;
    uint8_t *got = malloc(size + 1);
    if (speaks)
        speak(s, fds[1], data, size, step, got, &len);
    bool open = true;
    for (size_t at = 0; at < size && open; at += step) {
        put_raw(fds[1], data + at, size - at < step ? size - at : step);
        open = drain(s, step, got, size, &len);
    }
    shutdown(fds[1], SHUT_WR);
    if (open)
        CHECK(!drain(s, step, got, size, &len));
    session_goodbye(s);
    session_free(s);
    close(fds[0]);
    close(fds[1]);
    free(got);
    return 0;
}
