#include "run/fronts.h"

#include "base/log.h"
#include "grpc/api/grpc_methods.h"
#include "grpc/grpc_front.h"
#include "http/api/http_api.h"
#include "http/api/metrics_http.h"
#include "http/http_front.h"
#include "net/forward.h"
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
    if (sock_unix_path(address))
        LOG_INFO("Started %s at %s", service, address);
    else
        LOG_INFO("Started %s at %s:%u", service, address, port);
}

struct err *fronts_open(struct fronts *f)
{
    const struct options *o = &f->server->options;
    struct err *e = secure_open(&f->secure, o);
    if (!e && o->allow_grpc)
        e = name_front_option(grpc_front_open(f->server, &grpc_methods_service, o->grpc_address,
                                              o->grpc_port, o->reuse_grpc_port, &f->secure.grpc,
                                              &f->grpc),
                              "grpc", o->grpc_address);
    if (!e && f->grpc)
        say_started("GRPCInferenceService", o->grpc_address, grpc_front_port(f->grpc));
    if (!e && o->allow_http)
        e = name_front_option(http_front_open(f->server, &http_api_service, o->http_address,
                                              o->http_port, o->reuse_http_port, &f->secure.http,
                                              &f->http),
                              "http", o->http_address);
    if (!e && f->http)
        say_started("HTTPService", o->http_address, http_front_port(f->http));
    const char *address = o->metrics_address ? o->metrics_address : o->http_address;
    if (!e && o->allow_metrics)
        e = name_front_option(http_front_open(f->server, &metrics_http_service, address,
                                              o->metrics_port, false, &f->secure.metrics,
                                              &f->metrics),
                              "metrics", address);
    if (!e && f->metrics)
        say_started("Metrics Service", address, http_front_port(f->metrics));
    return e;
}

static void fronts_stop_grpc(void *arg)
{
    struct fronts *f = arg;
    grpc_front_stop(f->grpc, f->conn_until);
}

/* Stops both front ends at the same time, so that a long request of one protocol takes no time
 * from the other protocol's clients. */
static void fronts_stop_all(struct fronts *f)
{
    struct thread *grpc = NULL;
    err_free(thread_start("stopper-grpc", fronts_stop_grpc, f, &grpc));
    http_front_stop(f->http, f->conn_until);
    if (!grpc)
        fronts_stop_grpc(f);
    thread_join(grpc);
    http_front_stop(f->metrics, f->conn_until);
}

/* Refuses two front ends at the same Unix socket, of which only one could be reached, or at the
 * same port: where both may share it, the kernel would spread connections over both. */
static struct err *check_addresses(const struct options *o)
{
    const struct {
        const char *option;
        bool open;
        const char *address;
        const char *port_option;
        uint16_t port;
    } fronts[] = {
        {"http-address", o->allow_http, o->http_address, "http-port", o->http_port},
        {"grpc-address", o->allow_grpc, o->grpc_address, "grpc-port", o->grpc_port},
        {"metrics-address", o->allow_metrics,
         o->metrics_address ? o->metrics_address : o->http_address, "metrics-port",
         o->metrics_port},
    };
    for (size_t i = 1; i < sizeof(fronts) / sizeof(*fronts); i++)
        for (size_t k = 0; k < i; k++) {
            if (!fronts[i].open || !fronts[k].open ||
                strcmp(fronts[i].address, fronts[k].address) != 0)
                continue;
            if (sock_unix_path(fronts[i].address))
                return err_new(STATUS_INVALID_ARG,
                               "option --%s: expected an address of its own, found '%s', which is "
                               "that of --%s",
                               fronts[i].option, fronts[i].address, fronts[k].option);
            if (fronts[i].port && fronts[i].port == fronts[k].port)
                return err_new(STATUS_INVALID_ARG,
                               "option --%s: expected a port of its own, found %u, which is that "
                               "of --%s",
                               fronts[i].port_option, fronts[i].port, fronts[k].port_option);
        }
    return NULL;
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
        e = check_pattern(o->allow_http, "http-header-forward-pattern", o->http_header_pattern);
    if (!e)
        e = check_pattern(o->allow_grpc, "grpc-header-forward-pattern", o->grpc_header_pattern);
    return e;
}

void fronts_end(struct fronts *f, struct thread *starter, time_ns until)
{
    time_ns share = (until - clock_now_ns()) / 4;
    struct countdown countdown;
    f->conn_until = until - (share < UNLOAD_NS ? share : UNLOAD_NS);
    server_refuse(f->server);
    countdown_begin(&countdown, f->server->repo, f->http, until);
    fronts_stop_all(f);
    countdown_unload(&countdown);
    thread_join(starter); /* a backend that is loading a model cannot be stopped */
    server_unload(f->server);
    grpc_front_close(f->grpc); /* until now new clients were told that the server stops */
    server_stop(f->server);
    countdown_end(&countdown);
    http_front_free(f->http);
    grpc_front_free(f->grpc);
    http_front_free(f->metrics);
    secure_close(&f->secure);
}
