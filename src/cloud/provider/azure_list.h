#pragma once
/* Parses pages of List Blobs. Pure, except for the XML parser. Private to provider/. */
#include "base/err.h"

#include <stddef.h>

struct cloud_abi;
struct listing;

/* azure_list_read - blobs by their name below `prefix`; their tag is the ETag.
 * ret_next  the marker of the next page, owned by the caller; NULL = this was the last page
 * errors    INVALID_ARG: not a listing, or too many blobs */
struct err *azure_list_read(const struct cloud_abi *abi, const char *body, size_t len,
                            const char *prefix, struct listing *l, char **ret_next);
