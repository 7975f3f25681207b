#include "abi/parameter.h"

#include "base/mem.h"

#include <string.h>

#define PARAMETER_MAGIC 0x50415241u

static struct parameter *parameter_make(const char *name, enum param_type type)
{
    struct parameter *p = MEM_NEW(struct parameter);
    p->magic = PARAMETER_MAGIC;
    p->p.name = mem_strdup(name);
    p->p.type = type;
    return p;
}

struct parameter *parameter_new(const char *name, enum param_type type, const void *value)
{
    struct parameter *p;
    switch (type) {
    case PARAM_STRING:
        p = parameter_make(name, type);
        p->p.bytes.len = strlen(value);
        p->p.bytes.data = mem_strdup(value);
        return p;
    case PARAM_INT:
        p = parameter_make(name, type);
        memcpy(&p->p.i, value, sizeof(p->p.i));
        return p;
    case PARAM_BOOL:
        p = parameter_make(name, type);
        memcpy(&p->p.b, value, sizeof(p->p.b));
        return p;
    case PARAM_DOUBLE:
        p = parameter_make(name, type);
        memcpy(&p->p.d, value, sizeof(p->p.d));
        return p;
    case PARAM_BYTES:
        break;
    }
    return NULL;
}

struct parameter *parameter_new_bytes(const char *name, const void *bytes, size_t size)
{
    struct parameter *p = parameter_make(name, PARAM_BYTES);
    p->p.bytes.data = bytes;
    p->p.bytes.len = size;
    return p;
}

void parameter_free(struct parameter *p)
{
    if (!p)
        return;
    p->magic = 0;
    if (p->p.type == PARAM_STRING)
        mem_free((char *)(uintptr_t)p->p.bytes.data);
    mem_free((char *)(uintptr_t)p->p.name);
    mem_free(p);
}

const struct parameter *parameter_of(const void *handle)
{
    const struct parameter *p = handle;
    return p && p->magic == PARAMETER_MAGIC ? p : NULL;
}
