#pragma once
/* Decides who may use which interface; every front end asks here. Pure. */
#include "server/options/options_front.h"

#include <stdbool.h>
#include <stddef.h>

/* In gRPC the configured header name must have this prefix. */
#define GUARD_GRPC_PREFIX "triton-grpc-protocol-"

/* guard_allows - true if a request with this header value may use the interfaces of a category.
 * If a request has several headers with that name, the caller checks each: a proxy in front may
 * have checked another one.
 * value  of the header that the category requires (r->of[category].header); NULL = the request
 *        has none
 * A wrong value takes as long as the right one. */
bool guard_allows(const struct options_restrictions *r, enum options_category category,
                  const char *value, size_t len);

/* guard_restricted - true if the category requires a header. */
static inline bool guard_restricted(const struct options_restrictions *r,
                                    enum options_category category)
{
    return r->any && category != OPTIONS_CATEGORY_NONE && r->of[category].header;
}
