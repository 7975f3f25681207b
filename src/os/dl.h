#pragma once
/* Shared libraries opened at run time. */
#include "base/err.h"

struct dl;

/* dl_open - load a library with its symbols kept to itself.
 * errors  INTERNAL with the loader's own words */
struct err *dl_open(const char *path, struct dl **ret);

/* dl_symbol - the address of a symbol, NULL when the library has none of that name. */
void *dl_symbol(struct dl *d, const char *name);
void dl_close(struct dl *d);

/* dl_make_self_global - let libraries that are opened later find the symbols of the library that
 * `address` lies in, also when the host program loaded it locally. */
void dl_make_self_global(const void *address);

/* dl_path_of - the file that `address` was loaded from, as it was named when it was; NULL when
 * it lies in none. The caller's (mem_free). */
char *dl_path_of(const void *address);

/* dl_find_other - the file of a loaded library whose name begins with `prefix` and that
 * `address` does not lie in; NULL when there is none. The caller's (mem_free). */
char *dl_find_other(const char *prefix, const void *address);
