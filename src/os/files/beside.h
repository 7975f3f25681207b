#pragma once
/* What is installed beside libtritonserver.so: its prefix, the program, and the server's own
 * modules, which are libraries in nereid/ in its directory. Each module links a third-party
 * library that only some servers need. It is loaded on first use and never closed. */
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

/* beside_prefix - PREFIX of PREFIX/lib/libtritonserver.so, without links; NULL if the code is
 * linked into another file. The caller frees it (mem_free). */
char *beside_prefix(void);

/* beside_program - the path of a program in ../bin of the library's directory, or in that
 * directory itself; NULL if it does not exist. The caller frees it (mem_free). */
char *beside_program(const char *program);
