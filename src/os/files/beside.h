#pragma once
/* The server's own modules: libraries in nereid/ in the directory of libtritonserver.so. Each
 * links a third-party library that only some servers need. A module is loaded on first use and
 * never closed. */
#include "base/err.h"

#include <stdint.h>

/* A module exports one table, whose first member is its version. */
struct beside {
    const char *file; /* "nereid/libnereid_NAME.so" */
    const char *symbol;
    uint32_t version;
    /* the beginning of the error, such as "repositories in the cloud need" */
    const char *needed_by;
};

/* beside_load - load a module if needed, and return its table. Blocks.
 * errors  the module's file does not exist or cannot be loaded; INTERNAL if it has another
 *         version */
struct err *beside_load(const struct beside *b, const void **ret);
