#include "server/options/options_clouds.h"

#include "server/options/options_row.h"

#include <stdlib.h>
#include <string.h>

/* A variable of the environment; `standard` if it is not set, or empty. */
static const char *variable(const char *name, const char *standard)
{
    const char *value = getenv(name);
    return value && *value ? value : standard;
}

static struct err *bad_variable(const char *name, const char *value, const char *allowed)
{
    return err_new(STATUS_INVALID_ARG, "environment variable %s: expected %s, found '%s'", name,
                   allowed, value);
}

/* Reads the digits at *at; they and nothing else must stand before `end`. */
static bool read_port(const char **at, char end, uint16_t *ret)
{
    char *after;
    unsigned long n = strtoul(*at, &after, 10);
    bool ok = **at >= '0' && **at <= '9' && *after == end && n <= UINT16_MAX;
    *at = after;
    *ret = ok ? (uint16_t)n : 0;
    return ok;
}

struct err *options_clouds_range(const struct options_row *row, const char *value,
                                 struct options_port_range *field)
{
    struct options_port_range r = {.given = true};
    const char *at = value;
    if (!read_port(&at, '-', &r.first) || !read_port((at++, &at), '\0', &r.last) ||
        r.first > r.last)
        return options_value_bad(row, value, "<first>-<last>, two ports up to 65535");
    *field = r;
    return NULL;
}

static struct err *vertex_environment(struct options *o)
{
    const char *port = variable("AIP_HTTP_PORT", "");
    const char *at = port;
    if (*port && !read_port(&at, '\0', &o->vertex.port))
        return bad_variable("AIP_HTTP_PORT", port, "a port from 0 to 65535");
    if (strcmp(variable("AIP_MODE", ""), "PREDICTION") == 0) {
        o->vertex.allow = true;
        o->allow_http = o->allow_grpc = false;
    }
    o->vertex.predict = variable("AIP_PREDICT_ROUTE", "");
    o->vertex.health = variable("AIP_HEALTH_ROUTE", "");
    return NULL;
}

struct err *options_clouds_environment(struct options *o)
{
    o->sagemaker.ping = variable("SAGEMAKER_TRITON_PING_MODE", "ready");
    o->sagemaker.model =
        variable("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", OPTIONS_SAGEMAKER_NO_MODEL);
    o->sagemaker.inference = variable("SAGEMAKER_TRITON_INFERENCE_TYPE", "infer");
    return vertex_environment(o);
}

static bool is_inference(const char *type)
{
    return strcmp(type, "infer") == 0 || strcmp(type, "generate") == 0 ||
           strcmp(type, "generate_stream") == 0;
}

/* True for the path of a request. */
static bool is_path(const char *route)
{
    return *route == '/' && !strpbrk(route, "? #");
}

static struct err *settle_vertex(const struct options_vertex *v)
{
    static const char path[] = "the path of requests, beginning with '/', as Vertex AI sets it";
    if (!is_path(v->predict))
        return bad_variable("AIP_PREDICT_ROUTE", v->predict, path);
    if (!is_path(v->health))
        return bad_variable("AIP_HEALTH_ROUTE", v->health, path);
    return NULL;
}

struct err *options_clouds_settle(struct options *o)
{
    const char *storage = variable("AIP_STORAGE_URI", "");
    if (*storage && !o->repository_count)
        o->repositories[o->repository_count++] = storage;
    if (o->sagemaker.allow && !is_inference(o->sagemaker.inference))
        return bad_variable("SAGEMAKER_TRITON_INFERENCE_TYPE", o->sagemaker.inference,
                            "infer, generate or generate_stream");
    return o->vertex.allow ? settle_vertex(&o->vertex) : NULL;
}
