#pragma once
/* The interface of what a port serves: its routes, and who answers them. Connections know
 * nothing else of it. */
#include "server/options/options_front.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct front_metrics_kind;
struct http1_head;
struct http_exchange;
struct http_front;
struct http_message;

/* A part of the path, as its position in the target, because the request's own may be copied
 * together with the route. */
struct http_route_part {
    uint32_t at;
    uint32_t len; /* 0 = the path has no such part */
};

/* The meaning of a path. */
struct http_route {
    unsigned kind;      /* a route of the service; 0 = unknown */
    const char *target; /* what the service reads in place of the request's own; or NULL */
    struct http_route_part model;
    struct http_route_part version; /* digits */
    struct http_route_part repository;
    struct http_route_part region; /* of shared memory */
    bool unload; /* unload a model, or unregister a region, instead of the opposite */
    bool status; /* of shared memory: only a query */
    bool cuda;   /* of shared memory: memory of a device */
};

/* Room for what is around the message of an error. */
#define HTTP_SERVICE_FAULT_BYTES ((size_t)1024)

struct http_service {
    const struct front_metrics_kind *metrics;

    /* its requests reach models: the options about headers (forwarded as parameters, required
     * for access) apply */
    bool inference;

    /* open - make front->own, when the front end opens; close frees it. NULL = it has nothing of
     * its own. */
    void (*open)(struct http_front *f);
    void (*close)(struct http_front *f);

    /* Of a cloud's interface; else NULL. All headers are read then, and none is forwarded.
     * size_type: what Content-Type says of a body with binary data, up to the number of bytes of
     * JSON in front of them; it takes the place of Inference-Header-Content-Length. answer_type:
     * the same of answers; NULL = they are as everywhere. */
    const char *size_type;
    const char *answer_type;

    /* route - the route (metrics->routes) that a head means; called once per message. It may
     * change what the head says, except for its target. */
    struct http_route (*route)(const struct http_front *f, struct http1_head *head);

    /* category - what a route is for. The connection asks the guard who may use it, before the
     * service admits the request. */
    enum options_category (*category)(const struct http_route *route);

    /* admit - decide about a message by its head, before its body is received.
     * ret_max  the most bytes of its body; 0 = the body is not needed and is dropped
     * errors   answered at once; the body is dropped then */
    struct err *(*admit)(const struct http_front *f, const struct http1_head *head,
                         const struct http_route *route, uint64_t *ret_max);

    /* a bit for each route whose answer describes the server: such an answer is made at once,
     * and may be long */
    uint64_t tells;

    /* status - the HTTP status of an error; NULL = status_http of its code */
    uint16_t (*status)(const struct http_exchange *x, const struct err *e);

    /* fault - write the body of an error at `to`, which has HTTP_SERVICE_FAULT_BYTES and what
     * the message takes as a string; returns its end. NULL = {"error":message}. */
    char *(*fault)(const struct http_exchange *x, uint16_t status, const char *message, size_t len,
                   char *to);

    /* serve - answer a whole message x, now or later on this loop. The message is valid for the
     * call. */
    void (*serve)(struct http_exchange *x, struct http_message *m);
};
