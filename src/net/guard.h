#pragma once
/* Who may use which interface: the one place where every front door asks. Pure. */
#include "server/options/options_front.h"

#include <stdbool.h>
#include <stddef.h>

/* What the header of an interface has to be called in gRPC, before the configured name. */
#define GUARD_GRPC_PREFIX "triton-grpc-protocol-"

/* guard_allows - whether a request may use the interfaces of a category, by one of its headers.
 * It may when there is one, and all of that name are right: of several that differ, a proxy in
 * front could have looked at another one.
 * value  of the header that the category wants (r->of[category].header), NULL = the request has
 *        none
 * Takes as long for a wrong value as for the right one. */
bool guard_allows(const struct options_restrictions *r, enum options_category category,
                  const char *value, size_t len);

/* guard_restricted - whether the category wants a header at all. */
static inline bool guard_restricted(const struct options_restrictions *r,
                                    enum options_category category)
{
    return r->any && category != OPTIONS_CATEGORY_NONE && r->of[category].header;
}
