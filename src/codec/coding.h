#pragma once
/* The codings of bodies and messages that expand.h reads and shrink.h writes, and their names.
 * Pure; any thread. */
#include <stddef.h>

enum coding {
    CODING_IDENTITY, /* as it is */
    CODING_GZIP,
    CODING_DEFLATE, /* zlib */
    CODING_ZSTD,
    CODING_UNKNOWN,
};

/* coding_name - of one that is not UNKNOWN. */
const char *coding_name(enum coding c);

/* coding_find - the coding with a name of len bytes, in any case; "" is IDENTITY. */
enum coding coding_find(const char *name, size_t len);
