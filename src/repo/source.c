#include "repo/source.h"

#include "base/mem.h"
#include "os/tree.h"

struct source *source_new(char *dir, bool temporary)
{
    struct source *s = MEM_NEW(struct source);
    atomic_init(&s->refs, 1);
    s->dir = dir;
    s->temporary = temporary;
    return s;
}

struct source *source_ref(struct source *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void source_unref(struct source *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (s->temporary)
        tree_remove(s->dir);
    mem_free(s->dir);
    mem_free(s);
}
