#include "bfind.h"

#include <string.h>

void *bfind_named(void *entries, size_t count, size_t size, const char *name)
{
    for (size_t i = 0; name && i < count; i++) {
        char **entry = (void *)((char *)entries + i * size);
        if (strcmp(*entry, name) == 0)
            return entry;
    }
    return NULL;
}
