#pragma once
/* Pages of ListObjectsV2. Pure, but for the XML parser. */
#include "base/err.h"

#include <stddef.h>

struct cloud_abi;
struct listing;

/* s3_list_read - objects by their name below `prefix`; their tag is the ETag, or the time of the
 * last change where there is none.
 * ret_next  the token of the next page, the caller's; NULL = this was the last
 * errors    INVALID_ARG: not a listing, or too many objects */
struct err *s3_list_read(const struct cloud_abi *abi, const char *body, size_t len,
                         const char *prefix, struct listing *l, char **ret_next);
