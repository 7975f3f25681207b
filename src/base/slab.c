#include "base/slab.h"

#include "base/mem.h"

struct free_object {
    struct free_object *next;
};

struct free_list {
    struct free_object *head;
    unsigned count;
};

static _Thread_local struct free_list lists[SLAB_CLASSES];
static _Thread_local unsigned keep; /* objects a list may hold */

void *slab_alloc(const struct slab *s)
{
    struct free_list *l = &lists[s->index];
    if (l->head) {
        struct free_object *o = l->head;
        l->head = o->next;
        l->count--;
        return o;
    }
    return mem_alloc_aligned(s->object_bytes, 64);
}

void slab_free(const struct slab *s, void *object)
{
    struct free_list *l = &lists[s->index];
    if (l->count >= keep) {
        mem_free(object);
        return;
    }
    struct free_object *o = object;
    o->next = l->head;
    l->head = o;
    l->count++;
}

void slab_thread_begin(void)
{
    keep = SLAB_KEEP;
}

void slab_thread_end(void)
{
    keep = 0;
    for (unsigned i = 0; i < SLAB_CLASSES; i++) {
        while (lists[i].head) {
            struct free_object *next = lists[i].head->next;
            mem_free(lists[i].head);
            lists[i].head = next;
        }
        lists[i].count = 0;
    }
}
