#include "infer/param.h"

#include <string.h>

struct param *param_add(struct param_list *l, struct arena *a, const char *name, size_t len,
                        enum param_type type)
{
    struct param *p = arena_zalloc(a, sizeof(*p));
    p->name = arena_strndup(a, name, len);
    p->type = type;
    *(l->last ? l->last : &l->first) = p;
    l->last = &p->next;
    l->count++;
    return p;
}

struct param *param_add_string(struct param_list *l, struct arena *a, const char *name, size_t len,
                               const char *value, size_t value_len)
{
    struct param *p = param_add(l, a, name, len, PARAM_STRING);
    p->bytes.data = arena_strndup(a, value, value_len);
    p->bytes.len = value_len;
    return p;
}

const struct param *param_find(const struct param_list *l, const char *name)
{
    const struct param *found = NULL;
    for (const struct param *p = l->first; p; p = p->next)
        if (strcmp(p->name, name) == 0)
            found = p;
    return found;
}
