#pragma once
/* What a port serves: its routes, and who answers them. Connections know no more of it. */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct front_metrics_kind;
struct http1_head;
struct http_exchange;
struct http_front;
struct http_message;

/* A part of the path, by where it begins in the target: the target may be copied, and the route
 * with it. */
struct http_route_part {
    uint32_t at;
    uint32_t len; /* 0 = the path has no such part */
};

/* What a path means. */
struct http_route {
    unsigned kind; /* one of the service's; 0 = none that it knows */
    struct http_route_part model;
    struct http_route_part version; /* digits */
    struct http_route_part repository;
    bool unload; /* a model is to be unloaded, not loaded */
    bool status; /* of shared memory: only tells, changes nothing */
};

struct http_service {
    const struct front_metrics_kind *metrics;

    /* its requests reach models: the options about headers (which become parameters, which are
     * asked for) hold for it */
    bool inference;

    /* route - which of its routes (metrics->routes) a head means; asked once a message. */
    struct http_route (*route)(const struct http1_head *head);

    /* admit - decide about a message by its head, before its body is received.
     * ret_max  how many bytes its body may have; 0 = the body is of no use and is dropped
     * errors   answered at once; the body is dropped then */
    struct err *(*admit)(const struct http_front *f, const struct http1_head *head,
                         const struct http_route *route, uint64_t *ret_max);

    /* a bit for each route whose answer tells about the server: made up at once, and perhaps
     * long */
    uint64_t tells;

    /* serve - a whole message: answer x now, or later on this loop. The message is valid for the
     * call. */
    void (*serve)(struct http_exchange *x, struct http_message *m);
};
