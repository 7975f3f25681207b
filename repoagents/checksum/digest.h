#pragma once
/* The digest of a file. */
#include "triton/core/tritonserver.h"

#include <stddef.h>

#define DIGEST_TEXT 65u /* hex digits of the longest digest, and NUL */

/* digest_find - the algorithm with a name, in capitals as messages show it ("MD5", "SHA256");
 * NULL if there is none. The name may be in any case. */
const char *digest_find(const char *name, size_t len);

/* digest_of_file - the digest as lower-case hex digits.
 * algorithm  from digest_find
 * shown      the file's name for messages
 * errors     INVALID_ARG for a file that cannot be opened or read */
TRITONSERVER_Error *digest_of_file(const char *algorithm, const char *path, const char *shown,
                                   char ret[DIGEST_TEXT]);
