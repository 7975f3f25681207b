#pragma once
/* Parses pages of ListObjectsV2. Pure, except for the XML parser. */
#include "base/err.h"

#include <stddef.h>

struct cloud_abi;
struct listing;

/* s3_list_read - add objects with their names below `prefix`; their tag is the ETag, or the time
 * of the last change if there is no ETag.
 * ret_next  the token of the next page, owned by the caller; NULL = this was the last page
 * errors    INVALID_ARG: not a listing, or too many objects */
struct err *s3_list_read(const struct cloud_abi *abi, const char *body, size_t len,
                         const char *prefix, struct listing *l, char **ret_next);
