#pragma once
/* What the interfaces have in common that the machine learning services of clouds call: each is
 * another spelling of the inference port. A request is read as that port's request for one of its
 * routes, or has a route of the service's own. Worker's thread only, unless something else is
 * said. */
#include "http/api/http_route.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct http1_head;
struct http_exchange;
struct http_front;

/* A request of the inference port about one model. */
struct clouds_target {
    char *text; /* owned */
    struct http_route route;
};

/* clouds_target_init - "/v2/models/MODEL/ACTION". Any thread.
 * kind  what the action is */
void clouds_target_init(struct clouds_target *t, const char *model, const char *action,
                        enum http_route_kind kind);
void clouds_target_fini(struct clouds_target *t);

/* clouds_path - the path of a request, without its query. */
struct http_route_part clouds_path(const struct http1_head *head);

/* clouds_path_is - true if it is exactly this path. */
bool clouds_path_is(const struct http1_head *head, const char *path);

/* clouds_head - forget what these interfaces do not have, as in the reference: codings of bodies,
 * and the header of the inference port that says how much of a body is JSON. Content-Type says it
 * if it begins with size_type. */
void clouds_head(struct http1_head *head, const char *size_type);

/* clouds_admit - see http_service.admit. Routes of the service's own have no body.
 * errors  also INVALID_ARG: the size's type is not at the beginning of Content-Type */
struct err *clouds_admit(const struct http_front *f, const struct http1_head *head,
                         const struct http_route *route, uint64_t *ret_max);
