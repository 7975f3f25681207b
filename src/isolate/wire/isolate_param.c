#include "isolate/wire/isolate_param.h"

#include "isolate/wire/isolate_message.h"
#include "isolate/wire/isolate_wire.h"

#include <inttypes.h>
#include <string.h>

void isolate_param_put(struct strbuf *sb, const struct param_list *params)
{
    isolate_wire_put(sb, params->count);
    for (const struct param *p = params->first; p; p = p->next) {
        uint64_t bits = 0;
        isolate_wire_put_text(sb, p->name);
        isolate_wire_put(sb, p->type);
        switch (p->type) {
        case PARAM_STRING:
        case PARAM_BYTES:
            isolate_wire_put_bytes(sb, p->bytes.data, p->bytes.len);
            continue;
        case PARAM_INT:
            bits = (uint64_t)p->i;
            break;
        case PARAM_BOOL:
            bits = p->b;
            break;
        case PARAM_DOUBLE:
            memcpy(&bits, &p->d, sizeof(bits));
            break;
        }
        isolate_wire_put(sb, bits);
    }
}

static struct err *get_bytes(struct isolate_wire *w, struct param *p, struct arena *a)
{
    uint64_t len;
    const void *bytes = isolate_wire_get_bytes(w, &len);
    p->bytes.data = "";
    p->bytes.len = 0;
    if (w->bad)
        return NULL;
    char *copy = arena_try_alloc(a, len + 1, 8);
    if (!copy)
        return err_busy("no room for the %" PRIu64
                        " bytes of parameter '%s': the bytes that may be "
                        "in flight at once are in use; try again later, or raise --memory-budget",
                        len, p->name);
    if (len)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    p->bytes.data = copy;
    p->bytes.len = len;
    return NULL;
}

static struct err *get_one(struct isolate_wire *w, struct param_list *params, struct arena *a)
{
    const char *name = isolate_wire_get_text(w);
    enum param_type type = (enum param_type)isolate_wire_get_most(w, PARAM_BYTES);
    if (w->bad)
        return NULL;
    struct param *p = param_add(params, a, name, strlen(name), type);
    if (type == PARAM_STRING || type == PARAM_BYTES)
        return get_bytes(w, p, a);
    uint64_t bits = isolate_wire_get(w);
    if (type == PARAM_BOOL)
        p->b = bits != 0;
    else if (type == PARAM_INT)
        p->i = (int64_t)bits;
    else
        memcpy(&p->d, &bits, sizeof(bits));
    return NULL;
}

struct err *isolate_param_get(struct isolate_wire *w, struct param_list *params, struct arena *a)
{
    struct err *first = NULL;
    uint64_t count = isolate_wire_get_most(w, ISOLATE_MAX_PARAMS);
    for (uint64_t i = 0; i < count && !w->bad; i++) {
        struct err *e = get_one(w, params, a);
        if (first)
            err_free(e);
        else
            first = e;
    }
    return first;
}
