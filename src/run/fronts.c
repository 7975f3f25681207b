#include "run/fronts.h"

#include "base/log.h"
#include "base/mem.h"
#include "grpc/api/grpc_methods.h"
#include "grpc/grpc_front.h"
#include "http/api/http_api.h"
#include "http/api/metrics_http.h"
#include "http/clouds/sagemaker.h"
#include "http/clouds/vertex.h"
#include "http/http_front.h"
#include "http/live/live_http.h"
#include "http/openai/openai.h"
#include "net/forward.h"
#include "os/sock.h"
#include "os/sock_unix.h"
#include "os/thread.h"
#include "run/countdown.h"
#include "server/server.h"

#include <string.h>

/* The last quarter of the stopping time, at most this long, is reserved for unloading models,
 * even if connections still wait. */
#define UNLOAD_NS TIME_S(5)

/* Adds the front end, its address and its option to an error of opening it: the port is in use,
 * or the address is invalid. */
static struct err *name_front_option(struct err *e, const char *front, const char *address)
{
    if (!e)
        return NULL;
    bool port = err_code(e) == STATUS_UNAVAILABLE && !sock_unix_path(address);
    return err_wrap(e, "option --%s-%s", front, port ? "port" : "address");
}

static void say_started(const char *service, const char *address, uint16_t port)
{
    char *shown = sock_address(address, port);
    LOG_INFO("Started %s at %s", service, shown);
    mem_free(shown);
}

static const char *openai_address(const struct options *o)
{
    return o->openai.address ? o->openai.address : o->http_address;
}

static struct err *open_cloud(struct fronts *f, const struct http_service *service, uint16_t port,
                              const char *option, const char *what, struct http_front **ret)
{
    struct err *e = http_front_open(f->server, service, FRONTS_CLOUDS_ADDRESS, port, false,
                                    &f->secure.clouds, ret);
    if (!e)
        say_started(what, FRONTS_CLOUDS_ADDRESS, http_front_port(*ret));
    return name_front_option(e, option, FRONTS_CLOUDS_ADDRESS);
}

static struct err *open_clouds(struct fronts *f)
{
    const struct options *o = f->server->options;
    struct err *e = NULL;
    if (o->sagemaker.allow)
        e = open_cloud(f, &sagemaker_service, o->sagemaker.port, "sagemaker",
                       "Sagemaker HTTPService", &f->sagemaker);
    if (!e && o->vertex.allow)
        e = open_cloud(f, &vertex_service, o->vertex.port, "vertex-ai", "Vertex AI HTTPService",
                       &f->vertex);
    return e;
}

static struct err *open_openai(struct fronts *f)
{
    const struct options *o = f->server->options;
    const char *address = openai_address(o);
    struct err *e = http_front_open(f->server, &openai_service, address, o->openai.port,
                                    o->reuse_http_port, &f->secure.http, &f->openai);
    if (!e && !o->reuse_http_port)
        say_started("OpenAI HTTPService", address, http_front_port(f->openai));
    return name_front_option(e, "openai", address);
}

struct err *fronts_open(struct fronts *f)
{
    const struct options *o = f->server->options;
    const struct http_service *service = o->web ? &live_http_service : &http_api_service;
    struct err *e = secure_open(&f->secure, o);
    if (!e && o->allow_grpc)
        e = name_front_option(grpc_front_open(f->server, &grpc_methods_service, o->grpc_address,
                                              o->grpc_port, o->reuse_grpc_port, &f->secure.grpc,
                                              &f->grpc),
                              "grpc", o->grpc_address);
    if (!e && f->grpc && !o->reuse_grpc_port)
        say_started("GRPCInferenceService", o->grpc_address, grpc_front_port(f->grpc));
    if (!e && o->allow_http)
        e = name_front_option(http_front_open(f->server, service, o->http_address, o->http_port,
                                              o->reuse_http_port, &f->secure.http, &f->http),
                              "http", o->http_address);
    if (!e && f->http && !o->reuse_http_port)
        say_started("HTTPService", o->http_address, http_front_port(f->http));
    const char *address = o->metrics_address ? o->metrics_address : o->http_address;
    if (!e && o->allow_metrics)
        e = name_front_option(http_front_open(f->server, &metrics_http_service, address,
                                              o->metrics_port, false, &f->secure.metrics,
                                              &f->metrics),
                              "metrics", address);
    if (!e && f->metrics)
        say_started("Metrics Service", address, http_front_port(f->metrics));
    if (!e && o->openai.allow)
        e = open_openai(f);
    return e ? e : open_clouds(f);
}

/* Where a port is shared, another server serves until this one can. */
static struct err *share_ports(struct fronts *f)
{
    const struct options *o = f->server->options;
    const char *openai = openai_address(o);
    struct err *e = name_front_option(grpc_front_share(f->grpc), "grpc", o->grpc_address);
    if (!e)
        e = name_front_option(http_front_share(f->http), "http", o->http_address);
    if (!e)
        e = name_front_option(http_front_share(f->openai), "openai", openai);
    if (!e && f->grpc && o->reuse_grpc_port)
        say_started("GRPCInferenceService", o->grpc_address, grpc_front_port(f->grpc));
    if (!e && f->http && o->reuse_http_port)
        say_started("HTTPService", o->http_address, http_front_port(f->http));
    if (!e && f->openai && o->reuse_http_port)
        say_started("OpenAI HTTPService", openai, http_front_port(f->openai));
    return e;
}

struct err *fronts_load(struct fronts *f)
{
    struct err *e = server_load(f->server);
    if (!e && f->vertex && server_initializing(f->server))
        e = vertex_settle(f->vertex);
    if (!e && server_serve(f->server))
        e = share_ports(f);
    return e;
}

/* A front end, of either protocol, that is stopped. */
struct front_stop {
    const char *thread_name;
    struct grpc_front *grpc;
    struct http_front *http;
    time_ns until;
    struct thread *thread; /* NULL = not started */
    unsigned cut;          /* requests whose time was over */
};

static void front_stop(void *arg)
{
    struct front_stop *s = arg;
    s->cut = grpc_front_stop(s->grpc, s->until) + http_front_stop(s->http, s->until);
}

/* Stops the front ends that serve requests at the same time, so that a long request of one takes
 * no time from the clients of another.
 * until  when requests are cut whose models have not answered
 * returns  how many that were */
static unsigned fronts_stop_all(struct fronts *f, time_ns until)
{
    struct front_stop others[] = {
        {"stopper-grpc", f->grpc, NULL, until, NULL, 0},
        {"stopper-openai", NULL, f->openai, until, NULL, 0},
        {"stopper-sage", NULL, f->sagemaker, until, NULL, 0},
        {"stopper-vertex", NULL, f->vertex, until, NULL, 0},
    };
    const size_t count = sizeof(others) / sizeof(*others);
    for (size_t i = 0; i < count; i++)
        if (others[i].grpc || others[i].http)
            err_free(
                thread_start(others[i].thread_name, front_stop, &others[i], &others[i].thread));
    unsigned http = http_front_stop(f->http, until);
    for (size_t i = 0; i < count; i++) {
        if (!others[i].thread)
            front_stop(&others[i]);
        thread_join(others[i].thread);
        http += others[i].http ? others[i].cut : 0;
    }
    unsigned grpc = others[0].cut;
    http += http_front_stop(f->metrics, until);
    if (http || grpc)
        LOG_WARN("the time of --exit-timeout-secs for requests is over: %u over HTTP and %u over "
                 "gRPC are cut, whose models have not answered",
                 http, grpc);
    return http + grpc;
}

/* Where a front end listens. */
struct front_place {
    const char *option;
    bool open;
    const char *address;
    const char *port_option;
    uint16_t port;
};

#define FRONT_PLACES 6u

static void places_of(const struct options *o, struct front_place to[FRONT_PLACES])
{
    const char *metrics = o->metrics_address ? o->metrics_address : o->http_address;
    to[0] = (struct front_place){"http-address", o->allow_http, o->http_address, "http-port",
                                 o->http_port};
    to[1] = (struct front_place){"grpc-address", o->allow_grpc, o->grpc_address, "grpc-port",
                                 o->grpc_port};
    to[2] = (struct front_place){"metrics-address", o->allow_metrics, metrics, "metrics-port",
                                 o->metrics_port};
    to[3] = (struct front_place){"sagemaker-address", o->sagemaker.allow, FRONTS_CLOUDS_ADDRESS,
                                 "sagemaker-port", o->sagemaker.port};
    to[4] = (struct front_place){"vertex-ai-address", o->vertex.allow, FRONTS_CLOUDS_ADDRESS,
                                 "vertex-ai-port", o->vertex.port};
    to[5] = (struct front_place){"openai-address", o->openai.allow, openai_address(o),
                                 "openai-port", o->openai.port};
}

static bool places_meet(const struct front_place *one, const struct front_place *other)
{
    bool same = strcmp(one->address, other->address) == 0;
    if (!one->open || !other->open)
        return false;
    if (sock_unix_path(one->address) || sock_unix_path(other->address))
        return same;
    return one->port && one->port == other->port &&
           (same || sock_meet(one->address, other->address));
}

static struct err *check_apart(const struct front_place *one, const struct front_place *other)
{
    if (!places_meet(one, other))
        return NULL;
    if (sock_unix_path(one->address))
        return err_new(STATUS_INVALID_ARG,
                       "option --%s: expected an address of its own, found '%s', which is that of "
                       "--%s",
                       one->option, one->address, other->option);
    return err_new(STATUS_INVALID_ARG,
                   "option --%s: expected a port of its own, found %u, which is that of --%s",
                   one->port_option, one->port, other->port_option);
}

/* SageMaker's own port may be outside the range. */
static struct err *check_range(const struct options *o, const struct front_place *p)
{
    const struct options_port_range *range = &o->sagemaker.others;
    if (!o->sagemaker.allow || !range->given || !p->open || sock_unix_path(p->address) ||
        strcmp(p->port_option, "sagemaker-port") == 0 ||
        (p->port >= range->first && p->port <= range->last))
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "option --%s: expected a port from %u to %u, as --sagemaker-safe-port-range "
                   "says, found %u",
                   p->port_option, range->first, range->last, p->port);
}

/* Refuses two front ends at the same Unix socket, of which only one could be reached, or at the
 * same port: where both may share it, the kernel would spread connections over both. */
static struct err *check_addresses(const struct options *o)
{
    struct front_place places[FRONT_PLACES];
    struct err *e = NULL;
    places_of(o, places);
    for (size_t i = 0; i < FRONT_PLACES && !e; i++) {
        e = check_range(o, &places[i]);
        for (size_t k = 0; k < i && !e; k++)
            e = check_apart(&places[i], &places[k]);
    }
    return e;
}

/* Checks a pattern before anything is opened; the front ends compile it again. */
static struct err *check_pattern(bool open, const char *option, const char *pattern)
{
    struct forward *f = NULL;
    struct err *e = open ? forward_new(option, pattern, &f) : NULL;
    forward_free(f);
    return e;
}

struct err *fronts_check(const struct options *o)
{
    struct err *e = check_addresses(o);
    if (!e)
        e = check_pattern(o->allow_http || o->openai.allow, "http-header-forward-pattern",
                          o->http_header_pattern);
    if (!e)
        e = check_pattern(o->allow_grpc, "grpc-header-forward-pattern", o->grpc_header_pattern);
    return e;
}

/* The front end over HTTP whose connections are told of. */
static struct http_front *main_http(const struct fronts *f)
{
    return f->http ? f->http : f->openai ? f->openai : f->sagemaker ? f->sagemaker : f->vertex;
}

unsigned fronts_end(struct fronts *f, struct thread *starter, time_ns until)
{
    time_ns share = (until - clock_now_ns()) / 4;
    struct countdown countdown;
    server_refuse(f->server);
    countdown_begin(&countdown, f->server->repo, main_http(f), f->grpc, until);
    unsigned cut = fronts_stop_all(f, until - (share < UNLOAD_NS ? share : UNLOAD_NS));
    countdown_unload(&countdown);
    thread_join(starter); /* a backend that is loading a model cannot be stopped */
    server_unload(f->server);
    grpc_front_close(f->grpc); /* until now new clients were told that the server stops */
    server_stop(f->server);
    countdown_end(&countdown);
    http_front_free(f->http);
    grpc_front_free(f->grpc);
    http_front_free(f->metrics);
    http_front_free(f->openai);
    http_front_free(f->sagemaker);
    http_front_free(f->vertex);
    secure_close(&f->secure);
    return cut;
}
