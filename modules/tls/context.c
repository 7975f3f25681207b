#include "module.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The ciphers of TLS 1.2 with forward secrecy and authentication. All ciphers of TLS 1.3 have
 * both. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

/* The most certificates between a client's and its authority. */
#define MOST_BETWEEN 8

static int context_index = -1; /* the index under which an SSL_CTX has its struct context */

static void say(struct tls_abi_setup *s, enum tls_abi_part part, const char *text)
{
    s->part = part;
    snprintf(s->text, sizeof(s->text), "%s", text);
}

/* Sets the error text from the library's own message. */
static void say_why(struct tls_abi_setup *s, enum tls_abi_part part, const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    s->part = part;
    snprintf(s->text, sizeof(s->text), "%s%s%s", what, why ? ": " : "", why ? why : "");
}

/* Refuses a key with a pass phrase: the library would ask for it at the terminal. */
static int no_pass_phrase(char *to, int size, int writing, void *asked)
{
    (void)to;
    (void)size;
    (void)writing;
    *(bool *)asked = true;
    return -1;
}

static X509 *next_certificate(BIO *from)
{
    bool asked;
    return PEM_read_bio_X509(from, NULL, no_pass_phrase, &asked);
}

/* Sets the error text if the certificates end with one that is damaged, not where the text of
 * the file has no more.
 * count  how many were read before it */
static bool ended_well(struct tls_abi_setup *s, enum tls_abi_part part, unsigned count)
{
    unsigned long last = ERR_peek_last_error();
    if (ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE)
        return true;
    char what[64];
    snprintf(what, sizeof(what), "is cut off or damaged at certificate %u", count + 1);
    say_why(s, part, what);
    return false;
}

static int64_t seconds_of(const ASN1_TIME *t)
{
    struct tm at;
    return ASN1_TIME_to_tm(t, &at) == 1 ? (int64_t)timegm(&at) : 0;
}

/* Clients trust the chain while all of it is valid. */
static void limit_dates(struct tls_abi_setup *s, const X509 *cert)
{
    int64_t before = seconds_of(X509_get0_notBefore(cert));
    int64_t after = seconds_of(X509_get0_notAfter(cert));
    s->not_before = before > s->not_before ? before : s->not_before;
    s->not_after = after < s->not_after ? after : s->not_after;
}

/* Uses the certificates: the server's own first, then those up to its authority. */
static bool use_certificates(SSL_CTX *ssl, struct tls_abi_setup *s)
{
    BIO *from = BIO_new_mem_buf(s->cert, (int)s->cert_len);
    X509 *own = next_certificate(from);
    bool ok = own != NULL;
    unsigned count = 1;
    if (!ok) {
        if (ended_well(s, TLS_ABI_CERT, 0))
            say(s, TLS_ABI_CERT, "holds no certificate in PEM");
    } else if (SSL_CTX_use_certificate(ssl, own) != 1) {
        ok = false;
        say_why(s, TLS_ABI_CERT, "its certificate cannot be used");
    } else {
        s->not_before = INT64_MIN;
        s->not_after = INT64_MAX;
        limit_dates(s, own);
        X509_NAME_oneline(X509_get_subject_name(own), s->text, (int)sizeof(s->text));
    }
    X509_free(own);
    for (X509 *more; ok && (more = next_certificate(from)); count++) {
        ok = SSL_CTX_add0_chain_cert(ssl, more) == 1;
        if (!ok) {
            X509_free(more);
            say_why(s, TLS_ABI_CERT, "one of its further certificates cannot be used");
        } else {
            limit_dates(s, more);
        }
    }
    BIO_free(from);
    return ok && ended_well(s, TLS_ABI_CERT, count);
}

static bool use_key(SSL_CTX *ssl, struct tls_abi_setup *s)
{
    BIO *from = BIO_new_mem_buf(s->key, (int)s->key_len);
    bool asked = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(from, NULL, no_pass_phrase, &asked);
    BIO_free(from);
    bool ok = false;
    if (asked)
        say(s, TLS_ABI_KEY,
            "is encrypted, and nobody can be asked for its pass phrase: write it without one, as "
            "`openssl pkey -in KEY -out PLAIN_KEY` does");
    else if (!key)
        say(s, TLS_ABI_KEY, "holds no private key in PEM");
    else if (X509_check_private_key(SSL_CTX_get0_certificate(ssl), key) != 1)
        say(s, TLS_ABI_KEY, "does not fit the certificate");
    else if (SSL_CTX_use_PrivateKey(ssl, key) != 1)
        say_why(s, TLS_ABI_KEY, "cannot be used");
    else
        ok = true;
    EVP_PKEY_free(key);
    return ok;
}

/* Uses the authorities. Clients get their names, so that they can choose a certificate. */
static bool use_roots(SSL_CTX *ssl, struct tls_abi_setup *s)
{
    if (!s->root)
        return true;
    BIO *from = BIO_new_mem_buf(s->root, (int)s->root_len);
    X509_STORE *store = SSL_CTX_get_cert_store(ssl);
    X509 *root;
    unsigned count = 0;
    bool ok = true;
    for (; ok && (root = next_certificate(from)); count++) {
        ok = X509_STORE_add_cert(store, root) == 1 && SSL_CTX_add_client_CA(ssl, root) == 1;
        X509_free(root);
    }
    BIO_free(from);
    if (!ok)
        say_why(s, TLS_ABI_ROOT, "one of its certificates cannot be used");
    else if (!ended_well(s, TLS_ABI_ROOT, count))
        ok = false;
    else if (!count)
        say(s, TLS_ABI_ROOT, "holds no certificate in PEM");
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_verify_depth(ssl, MOST_BETWEEN);
    return ok && count;
}

const struct context *context_of(const SSL *ssl)
{
    return SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), context_index);
}

/* Chooses the protocol; the order of the server's protocols decides. */
static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                           const unsigned char *theirs, unsigned theirs_len, void *unused)
{
    (void)unused;
    const struct context *c = context_of(ssl);
    unsigned char *chosen = NULL;
    int found = SSL_select_next_proto(&chosen, ret_len, (const unsigned char *)c->protocols,
                                      c->protocols_len, theirs, theirs_len);
    *ret = chosen;
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Sessions are resumed by tickets that the client keeps, so the server stores nothing. */
static bool set_rules(SSL_CTX *ssl)
{
    static const unsigned char name[] = "nereid";
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ssl, 1);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_info_callback(ssl, session_noticed);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ssl, CIPHERS) == 1 && SSL_CTX_set_num_tickets(ssl, 1) == 1 &&
           SSL_CTX_set_session_id_context(ssl, name, sizeof(name) - 1) == 1;
}

/* Only one thread at a time makes contexts. */
void *context_new(struct tls_abi_setup *s)
{
    ERR_clear_error();
    if (context_index < 0)
        context_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    struct context *c = calloc(1, sizeof(*c));
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());
    bool ok = c && ssl && s->protocols_len <= sizeof(c->protocols) &&
              SSL_CTX_set_ex_data(ssl, context_index, c) == 1;
    if (!ok) {
        free(c);
        SSL_CTX_free(ssl);
        say_why(s, TLS_ABI_LIBRARY, "OpenSSL cannot be used");
        return NULL;
    }
    memcpy(c->protocols, s->protocols, s->protocols_len);
    c->protocols_len = (unsigned)s->protocols_len;
    c->protocol_needed = s->protocol_needed;
    c->ssl = ssl;
    atomic_init(&c->refs, 1);
    ok = set_rules(ssl);
    if (!ok)
        say_why(s, TLS_ABI_LIBRARY, "OpenSSL cannot be used");
    ok = ok && use_certificates(ssl, s) && use_key(ssl, s) && use_roots(ssl, s);
    ERR_clear_error();
    if (ok)
        return c;
    context_free(c);
    return NULL;
}

void context_free(void *context)
{
    struct context *c = context;
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(c->ssl);
    free(c);
}
