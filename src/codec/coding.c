#include "codec/coding.h"

#include <strings.h>

static const struct {
    const char *name;
    size_t len;
} codings[CODING_UNKNOWN] = {
    [CODING_IDENTITY] = {"identity", 8},
    [CODING_GZIP] = {"gzip", 4},
    [CODING_DEFLATE] = {"deflate", 7},
    [CODING_ZSTD] = {"zstd", 4},
};

const char *coding_name(enum coding c)
{
    return codings[c].name;
}

enum coding coding_find(const char *name, size_t len)
{
    if (!len)
        return CODING_IDENTITY;
    for (enum coding c = CODING_IDENTITY; c < CODING_UNKNOWN; c++)
        if (codings[c].len == len && strncasecmp(codings[c].name, name, len) == 0)
            return c;
    return CODING_UNKNOWN;
}
