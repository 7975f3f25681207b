#include "model/datatype.h"

#include <string.h>

struct row {
    /* the name of a datatype has at most 7 characters, so 8 bytes are enough to compare it */
    char name[16];
    const char *config_name;
    uint32_t bytes;
};

static const struct row rows[DATATYPE_COUNT] = {
    [DATATYPE_INVALID] = {"<invalid>", "TYPE_INVALID", 0},
#define DATATYPE(suffix, number, size, config) [DATATYPE_##suffix] = {#suffix, (config), (size)},
#include "model/datatype.def"
#undef DATATYPE
};

static const struct row *datatype_row(enum datatype t)
{
    return &rows[(unsigned)t < DATATYPE_COUNT ? t : DATATYPE_INVALID];
}

const char *datatype_name(enum datatype t)
{
    return datatype_row(t)->name;
}

const char *datatype_config_name(enum datatype t)
{
    return datatype_row(t)->config_name;
}

enum datatype datatype_parse(const char *name, size_t len)
{
    char wanted[8] = "";
    if (!len || len >= sizeof(wanted) || !name[len - 1])
        return DATATYPE_INVALID;
    memcpy(wanted, name, len);
    for (unsigned i = DATATYPE_INVALID + 1; i < DATATYPE_COUNT; i++)
        if (memcmp(rows[i].name, wanted, sizeof(wanted)) == 0)
            return (enum datatype)i;
    return DATATYPE_INVALID;
}

uint32_t datatype_bytes(enum datatype t)
{
    return datatype_row(t)->bytes;
}
