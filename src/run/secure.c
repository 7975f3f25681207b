#include "run/secure.h"

#include "net/keys.h"
#include "net/tls/tls.h"
#include "server/options/options.h"

#define LOOK_EVERY TIME_S(2)

/* ALPN protocols. gRPC clients always offer h2, and gRPC libraries close a connection on which
 * the server did not select it; so h2 is required there. */
static const struct tls_protocols of_http = {"\x02h2\x08http/1.1", false};
static const struct tls_protocols of_grpc = {"\x02h2", true};

bool secure_asked(const struct options *o)
{
    return o->http_tls.on || o->http_tls.mutual || o->grpc_tls.on || o->grpc_tls.mutual ||
           o->metrics_tls.on || o->metrics_tls.mutual || o->api_keys_file;
}

struct err *secure_open(struct secure *s, const struct options *o)
{
    *s = (struct secure){0};
    struct keys *keys;
    struct err *e = keys_new(o->api_keys_file, &keys);
    s->http.keys = s->grpc.keys = s->metrics.keys = s->clouds.keys = keys;
    if (!e && o->allow_grpc)
        e = tls_new("grpc", &o->grpc_tls, &of_grpc, &s->grpc.tls);
    if (!e && (o->allow_http || o->openai.allow))
        e = tls_new("http", &o->http_tls, &of_http, &s->http.tls);
    if (!e && o->allow_metrics)
        e = tls_new("metrics", &o->metrics_tls, &of_http, &s->metrics.tls);
    return e;
}

time_ns secure_next(const struct secure *s)
{
    return s->http.keys || s->http.tls || s->grpc.tls || s->metrics.tls
               ? clock_now_ns() + LOOK_EVERY
               : TIME_NEVER;
}

void secure_look(const struct secure *s, bool now)
{
    keys_look(s->http.keys, now);
    tls_look(s->http.tls, now);
    tls_look(s->grpc.tls, now);
    tls_look(s->metrics.tls, now);
}

void secure_close(struct secure *s)
{
    keys_free(s->http.keys);
    tls_free(s->http.tls);
    tls_free(s->grpc.tls);
    tls_free(s->metrics.tls);
    *s = (struct secure){0};
}
