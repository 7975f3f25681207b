#pragma once
/* Shared libraries opened at run time. */
#include "base/err.h"

#include <stddef.h>

struct dl;

/* A function that is wanted of a library. */
struct dl_function {
    const char *name;
    void *to; /* the address of a pointer to such a function */
};

/* dl_open - load a library without making its symbols global.
 * errors  INTERNAL with the loader's message, or if the path is not a regular file: the loader
 *         would wait for somebody to write to a named pipe */
struct err *dl_open(const char *path, struct dl **ret);

/* dl_symbol - the address of a symbol; NULL if the library does not have it. */
void *dl_symbol(struct dl *d, const char *name);

/* dl_functions - set the pointers of all functions; NULL where the library does not have one.
 * returns  how many it has */
size_t dl_functions(struct dl *d, const struct dl_function *wanted, size_t count);

void dl_close(struct dl *d);

/* dl_make_self_global - make the symbols of the library that contains `address` visible to
 * libraries that are loaded later, even if the host program loaded it locally. */
void dl_make_self_global(const void *address);

/* dl_path_of - the path from which the code at `address` was loaded; NULL if there is none. The
 * caller frees it (mem_free). */
char *dl_path_of(const void *address);

/* dl_find_other - the path of a loaded library whose name begins with `prefix` and that does not
 * contain `address`; NULL if there is none. The caller frees it (mem_free). */
char *dl_find_other(const char *prefix, const void *address);
