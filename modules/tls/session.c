#include "module.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The bytes of a record, and how much of the next one may be read. */
#define RECORD_BYTES  ((size_t)16384)
#define SURPLUS_BYTES (RECORD_BYTES + 2048)

/* Shorter pieces share a record with what follows. */
#define DIRECT_BYTES ((size_t)8192)

/* The most handshake messages, such as changes of keys, without a byte of data in between. */
#define MOST_NOTICES 64u

struct session {
    struct tls_abi_session head; /* first member */
    SSL *ssl;
    struct context *context; /* a reference */
    int fd;
    size_t may_take;  /* bytes that may still be taken from the socket */
    unsigned notices; /* see MOST_NOTICES */
    bool drained;     /* the socket had fewer bytes than requested */
    bool ended;       /* the socket is drained and will have no more bytes */
    bool broken;      /* the socket failed */
    bool failed;
    bool more; /* the next record follows at once */
};

static BIO_METHOD *method;

static struct session *of(struct tls_abi_session *s)
{
    return (struct session *)s;
}

static int take(BIO *bio, char *to, size_t n, size_t *ret)
{
    struct session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    size_t most = n < s->may_take ? n : s->may_take;
    if (!most) {
        BIO_set_retry_read(bio);
        return 0;
    }
    ssize_t got;
    do
        got = recv(s->fd, to, most, 0);
    while (got < 0 && errno == EINTR);
    s->drained = got < (ssize_t)most;
    if (got > 0) {
        s->may_take -= (size_t)got;
        *ret = (size_t)got;
        return 1;
    }
    if (got == 0)
        s->ended = true;
    else if (errno == EAGAIN)
        BIO_set_retry_read(bio);
    else
        s->broken = true;
    return 0;
}

static int give(BIO *bio, const char *from, size_t n, size_t *ret)
{
    struct session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t put;
    do
        put = send(s->fd, from, n, MSG_NOSIGNAL | (s->more ? MSG_MORE : 0));
    while (put < 0 && errno == EINTR);
    if (put > 0) {
        *ret = (size_t)put;
        return 1;
    }
    if (put < 0 && errno == EAGAIN)
        BIO_set_retry_write(bio);
    else
        s->broken = true;
    return 0;
}

static long control(BIO *bio, int what, long number, void *pointer)
{
    (void)number;
    (void)pointer;
    const struct session *s = BIO_get_data(bio);
    if (what == BIO_CTRL_EOF)
        return s->ended;
    return what == BIO_CTRL_FLUSH;
}

static void make_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection");
    if (!m)
        return;
    BIO_meth_set_read_ex(m, take);
    BIO_meth_set_write_ex(m, give);
    BIO_meth_set_ctrl(m, control);
    method = m;
}

static bool has_method(void)
{
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
    return CRYPTO_THREAD_run_once(&once, make_method) == 1 && method;
}

struct tls_abi_session *session_new(void *context, int fd)
{
    struct context *c = context;
    struct session *s = calloc(1, sizeof(*s));
    SSL *ssl = SSL_new(c->ssl);
    BIO *bio = has_method() ? BIO_new(method) : NULL;
    if (!s || !ssl || !bio) {
        free(s);
        SSL_free(ssl);
        BIO_free(bio);
        ERR_clear_error();
        return NULL;
    }
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    s->context = c;
    s->fd = fd;
    s->ssl = ssl;
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_app_data(ssl, s);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_accept_state(ssl);
    return &s->head;
}

void session_free(struct tls_abi_session *session)
{
    struct session *s = of(session);
    if (!s)
        return;
    SSL_free(s->ssl);
    context_free(s->context);
    free(s);
}

void session_noticed(const SSL *ssl, int where, int value)
{
    (void)value;
    struct session *s = SSL_get_app_data(ssl);
    if (s && s->head.established && (where & SSL_CB_LOOP))
        s->notices++;
}

static ssize_t fail(struct session *s, const char *why)
{
    s->failed = true;
    s->head.fault = why;
    s->head.wants_out = false;
    s->head.holds = true;
    return -2;
}

/* Checks the handshake, which may just have ended. Returns false if it must not continue. */
static bool look_at_handshake(struct session *s)
{
    if (s->head.established || !SSL_is_init_finished(s->ssl))
        return true;
    s->head.established = true;
    s->head.resumed = SSL_session_reused(s->ssl);
    const unsigned char *name;
    unsigned len;
    SSL_get0_alpn_selected(s->ssl, &name, &len);
    if (len == 2 && memcmp(name, "h2", 2) == 0)
        s->head.protocol = TLS_ABI_PROTOCOL_H2;
    else if (len)
        s->head.protocol = TLS_ABI_PROTOCOL_HTTP1;
    return len || !context_of(s->ssl)->protocol_needed;
}

/* Nothing was read or written: 1 = would block, 0 = the peer closed its side, -2 = failed. */
static ssize_t look_at_failure(struct session *s, int result)
{
    int e = SSL_get_error(s->ssl, result);
    s->head.wants_out = e == SSL_ERROR_WANT_WRITE;
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
        return 1;
    if (s->broken)
        return fail(s, NULL);
    if (e == SSL_ERROR_ZERO_RETURN || s->ended)
        return s->head.established ? 0 : fail(s, NULL);
    const char *why = ERR_reason_error_string(ERR_peek_error());
    return fail(s, why ? why : "unknown");
}

ssize_t session_read(struct tls_abi_session *session, void *to, size_t n)
{
    struct session *s = of(session);
    if (s->failed)
        return -2;
    ERR_clear_error();
    s->may_take = n + SURPLUS_BYTES;
    s->head.wants_out = s->head.holds = false;
    size_t total = 0;
    ssize_t end = 1;
    do {
        size_t got;
        int result = SSL_read_ex(s->ssl, (char *)to + total, n - total, &got);
        if (!look_at_handshake(s))
            return fail(s, "the client names no protocol that is spoken here (ALPN)");
        if (s->notices > MOST_NOTICES)
            return fail(s, "too many messages that change keys");
        if (result != 1) {
            end = look_at_failure(s, result);
            break;
        }
        total += got;
        s->notices = 0;
    } while (total < n && (!s->drained || SSL_has_pending(s->ssl)));
    s->head.holds = end != 1 || (total == n && SSL_has_pending(s->ssl));
    if (total)
        return (ssize_t)total; /* the next call will report the end or the failure */
    return end == 1 ? -1 : end;
}

/* The next record: several short pieces are joined in `room`; a long piece gives its own bytes.
 * The result for the same pieces is always the same. */
static const void *next_record(const struct iovec *pieces, int count, size_t skip, char *room,
                               size_t *ret_len)
{
    const char *first = (const char *)pieces[0].iov_base + skip;
    size_t len = pieces[0].iov_len - skip;
    if (count == 1 || len >= DIRECT_BYTES) {
        *ret_len = len;
        return first;
    }
    size_t used = 0;
    for (int i = 0; i < count && used < RECORD_BYTES; i++) {
        const char *from = (const char *)pieces[i].iov_base + (i ? 0 : skip);
        size_t here = pieces[i].iov_len - (i ? 0 : skip);
        here = here < RECORD_BYTES - used ? here : RECORD_BYTES - used;
        memcpy(room + used, from, here);
        used += here;
    }
    *ret_len = used;
    return room;
}

/* The most bytes encrypted at a time, because other connections wait meanwhile. */
#define WRITE_AT_ONCE ((size_t)512 << 10)

ssize_t session_write(struct tls_abi_session *session, const struct iovec *pieces, int count)
{
    struct session *s = of(session);
    char room[RECORD_BYTES];
    if (s->failed)
        return -2;
    ERR_clear_error();
    s->head.wants_out = false;
    size_t total = 0, skip = 0, left = 0;
    for (int i = 0; i < count; i++)
        left += pieces[i].iov_len;
    while (count && total < WRITE_AT_ONCE) {
        if (pieces->iov_len == skip) {
            pieces++;
            count--;
            skip = 0;
            continue;
        }
        size_t len, put;
        const void *record = next_record(pieces, count, skip, room, &len);
        size_t here = len < RECORD_BYTES ? len : RECORD_BYTES;
        s->more = here < left;
        int result = SSL_write_ex(s->ssl, record, len, &put);
        if (!look_at_handshake(s))
            return fail(s, "the client names no protocol that is spoken here (ALPN)");
        if (result != 1) {
            ssize_t end = look_at_failure(s, result);
            if (end != 1)
                return total ? (ssize_t)total : -2;
            break;
        }
        total += put;
        left -= put;
        for (put += skip; count && put >= pieces->iov_len; count--)
            put -= (pieces++)->iov_len;
        skip = put;
    }
    return (ssize_t)total;
}

void session_goodbye(struct tls_abi_session *session)
{
    struct session *s = of(session);
    if (s->failed || !s->head.established)
        return;
    ERR_clear_error();
    s->more = false;
    SSL_shutdown(s->ssl);
    ERR_clear_error();
}
