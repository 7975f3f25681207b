#include "net/tls/tls.h"

#include "base/log.h"
#include "base/mem.h"
#include "os/files/beside.h"
#include "os/files/file.h"
#include "os/files/stamp.h"
#include "os/mutex.h"
#include "net/tls/tls_abi.h"
#include "server/options/options_front.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* The most bytes of a file: more than all certificate authorities together need. */
#define FILE_BYTES ((size_t)4 << 20)

struct tls {
    const struct tls_abi *abi;
    const char *front;
    const struct options_tls *options;
    struct tls_protocols protocols;
    struct stamp_watch watch;
    int64_t not_after; /* seconds since 1970; 0 = the end of the certificate was told */
    struct mutex lock; /* rank LEAF; guards context */
    void *context;
};

/* The contents of the three files. */
struct texts {
    char *of[3]; /* by enum tls_abi_part */
    size_t len[3];
};

static const char *path_of(const struct tls *t, enum tls_abi_part part)
{
    return part == TLS_ABI_CERT  ? t->options->cert
           : part == TLS_ABI_KEY ? t->options->key
                                 : t->options->root;
}

static const char *option_of(enum tls_abi_part part)
{
    return part == TLS_ABI_CERT ? "server-cert" : part == TLS_ABI_KEY ? "server-key" : "root-cert";
}

static struct err *tls_load_abi(const struct tls_abi **ret)
{
    static const struct beside module = {
        .file = "nereid/libnereid_tls.so",
        .symbol = TLS_ABI_SYMBOL,
        .version = TLS_ABI_VERSION,
        .needed_by = "TLS needs",
    };
    const void *table;
    struct err *e = beside_load(&module, &table);
    if (!e)
        *ret = table;
    return e;
}

static void tls_drop_texts(struct texts *x)
{
    for (int i = 0; i < 3; i++) {
        if (x->of[i])
            explicit_bzero(x->of[i], x->len[i]);
        mem_free(x->of[i]);
    }
}

static struct err *tls_read_texts(const struct tls *t, struct texts *x)
{
    struct err *e = NULL;
    for (enum tls_abi_part part = TLS_ABI_CERT; part <= TLS_ABI_ROOT && !e; part++) {
        if (part == TLS_ABI_ROOT && !t->options->mutual)
            break;
        e = file_read(path_of(t, part), FILE_BYTES, &x->of[part], &x->len[part]);
        e = err_wrap(e, "option --%s-%s", t->front, option_of(part));
    }
    return e;
}

static void tls_put_day(int64_t seconds, char to[32])
{
    struct tm at;
    time_t when = (time_t)seconds;
    gmtime_r(&when, &at);
    strftime(to, 32, "%Y-%m-%d %H:%M:%S UTC", &at);
}

static void tls_warn_of_end(struct tls *t)
{
    char day[32];
    if (!t->not_after || (int64_t)time(NULL) <= t->not_after)
        return;
    tls_put_day(t->not_after, day);
    t->not_after = 0;
    LOG_WARN("option --%s-server-cert: the certificate in '%s' has expired on %s: clients that "
             "check it will not connect",
             t->front, t->options->cert, day);
}

static void tls_warn_of_dates(struct tls *t, const struct tls_abi_setup *s)
{
    char day[32];
    t->not_after = s->not_after;
    tls_warn_of_end(t);
    if ((int64_t)time(NULL) >= s->not_before)
        return;
    tls_put_day(s->not_before, day);
    LOG_WARN("option --%s-server-cert: the certificate in '%s' is not valid before %s: clients "
             "that check it will not connect",
             t->front, t->options->cert, day);
}

static struct err *tls_setup_error(const struct tls *t, const struct tls_abi_setup *s)
{
    if (s->part == TLS_ABI_LIBRARY)
        return err_new(STATUS_INTERNAL, "option --%s-use-ssl: %s", t->front, s->text);
    return err_new(STATUS_INVALID_ARG, "option --%s-%s: '%s' %s", t->front, option_of(s->part),
                   path_of(t, s->part), s->text);
}

static struct err *tls_load(struct tls *t)
{
    struct texts x = {0};
    struct err *e = tls_read_texts(t, &x);
    struct tls_abi_setup s = {
        .cert = x.of[TLS_ABI_CERT],
        .cert_len = x.len[TLS_ABI_CERT],
        .key = x.of[TLS_ABI_KEY],
        .key_len = x.len[TLS_ABI_KEY],
        .root = x.of[TLS_ABI_ROOT],
        .root_len = x.len[TLS_ABI_ROOT],
        .protocols = t->protocols.names,
        .protocols_len = strlen(t->protocols.names),
        .protocol_needed = t->protocols.needed,
    };
    void *made = e ? NULL : t->abi->context_new(&s);
    if (!e && !made)
        e = tls_setup_error(t, &s);
    tls_drop_texts(&x);
    if (e)
        return e;
    tls_warn_of_dates(t, &s);
    mutex_lock(&t->lock);
    void *old = t->context;
    t->context = made;
    mutex_unlock(&t->lock);
    t->abi->context_free(old);
    char day[32];
    tls_put_day(s.not_after, day);
    LOG_INFO("TLS: %s uses the certificate '%s' until %s", t->front, s.text, day);
    return NULL;
}

static uint64_t tls_stamp(const struct tls *t)
{
    uint64_t sum = 0;
    for (enum tls_abi_part part = TLS_ABI_CERT; part <= TLS_ABI_ROOT; part++)
        if (path_of(t, part))
            sum = sum * 31 + stamp_file(path_of(t, part));
    return sum;
}

/* Checks which options must be given together. *ret_asked: the options ask for TLS. */
static struct err *tls_check_options(const char *front, const struct options_tls *o,
                                     bool *ret_asked)
{
    *ret_asked = o->on || o->mutual;
    if (!*ret_asked) {
        if (o->cert || o->key || o->root)
            LOG_WARN("a certificate or key of %s is given, and does nothing without "
                     "--%s-use-ssl=true",
                     front, front);
        return NULL;
    }
    const char *missing = !o->cert                ? "server-cert"
                          : !o->key               ? "server-key"
                          : o->mutual && !o->root ? "root-cert"
                                                  : NULL;
    if (!missing)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "option --%s-use-ssl%s: expected --%s-%s=<file> beside it",
                   front, o->mutual ? "-mutual" : "", front, missing);
}

struct err *tls_new(const char *front, const struct options_tls *o,
                    const struct tls_protocols *protocols, struct tls **ret)
{
    bool asked;
    struct err *e = tls_check_options(front, o, &asked);
    *ret = NULL;
    if (e || !asked)
        return e;
    struct tls *t = MEM_NEW(struct tls);
    *t = (struct tls){.front = front, .options = o, .protocols = *protocols};
    mutex_init(&t->lock, MUTEX_RANK_LEAF);
    stamp_watch_due(&t->watch, tls_stamp(t), true);
    e = tls_load_abi(&t->abi);
    if (!e)
        e = tls_load(t);
    if (e)
        tls_free(t);
    else
        *ret = t;
    return e;
}

void tls_look(struct tls *t, bool now)
{
    if (!t)
        return;
    tls_warn_of_end(t);
    if (!stamp_watch_due(&t->watch, tls_stamp(t), now))
        return;
    struct err *e = tls_load(t);
    if (stamp_watch_read(&t->watch, e))
        LOG_ERROR("TLS: %s goes on with the certificate that it has: %s", t->front, err_message(e));
    err_free(e);
}

struct tls_abi_session *tls_session(struct tls *t, int fd, const struct tls_abi **ret_abi)
{
    mutex_lock(&t->lock);
    struct tls_abi_session *s = t->abi->session_new(t->context, fd);
    mutex_unlock(&t->lock);
    *ret_abi = t->abi;
    return s;
}

const char *tls_front(const struct tls *t)
{
    return t->front;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    if (t->context)
        t->abi->context_free(t->context);
    mutex_fini(&t->lock);
    mem_free(t);
}
