#pragma once
/* The server's own modules: libraries in nereid/ beside libtritonserver.so, over libraries that
 * only some servers need. Loaded when they are asked for first, never closed. */
#include "base/err.h"

#include <stdint.h>

/* A module offers one table, whose first member is its version. */
struct beside {
    const char *file; /* "nereid/libnereid_NAME.so" */
    const char *symbol;
    uint32_t version;
    const char *needed_by; /* "repositories in the cloud need", for errors */
};

/* beside_load - the table of a module. Blocks.
 * errors  INTERNAL when it is not there, or is of another version */
struct err *beside_load(const struct beside *b, const void **ret);
