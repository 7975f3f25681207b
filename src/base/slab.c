#include "base/slab.h"

#include "base/mem.h"

/* What lies at the begin of a block: of a free object, and in front of one that has a token. */
struct head {
    struct head *next;
    uint64_t token; /* the slot; only in front of an object that has one */
};

_Static_assert(sizeof(struct head) == SLAB_HEAD,
               "slab_token finds the slot right before the object");

struct free_list {
    struct head *first;
    unsigned count;
    unsigned
        unused; /* the least that count was since the last slab_trim: so many were not needed */
    bool tokens;
};

static _Thread_local struct free_list lists[SLAB_CLASSES];
static _Thread_local unsigned keep; /* objects a list may hold */

static void *new_block(const struct slab *s)
{
    if (!s->tokens)
        return mem_alloc_aligned(s->object_bytes, 64);
    struct head *h = mem_alloc_aligned(SLAB_HEAD + s->object_bytes, 64);
    h->token = token_open(h + 1);
    return h;
}

static void free_block(struct head *h, bool tokens)
{
    if (tokens)
        token_close((uint32_t)h->token);
    mem_free(h);
}

void *slab_alloc(const struct slab *s)
{
    struct free_list *l = &lists[s->index];
    void *block = l->first;
    if (block) {
        l->first = l->first->next;
        if (--l->count < l->unused)
            l->unused = l->count;
    } else {
        block = new_block(s);
    }
    return (char *)block + (s->tokens ? SLAB_HEAD : 0);
}

void slab_free(const struct slab *s, void *object)
{
    struct free_list *l = &lists[s->index];
    struct head *h = (struct head *)((char *)object - (s->tokens ? SLAB_HEAD : 0));
    if (s->tokens)
        token_renew((uint32_t)h->token);
    if (l->count >= keep) {
        free_block(h, s->tokens);
        return;
    }
    h->next = l->first;
    l->first = h;
    l->count++;
    l->tokens = s->tokens;
}

void slab_thread_begin(void)
{
    keep = SLAB_KEEP;
}

static void shorten(struct free_list *l, unsigned by)
{
    l->count -= by;
    while (by--) {
        struct head *next = l->first->next;
        free_block(l->first, l->tokens);
        l->first = next;
    }
    l->unused = l->count;
}

size_t slab_trim(void)
{
    size_t freed = 0;
    for (unsigned i = 0; i < SLAB_CLASSES; i++) {
        freed += lists[i].unused;
        shorten(&lists[i], lists[i].unused);
    }
    return freed;
}

void slab_thread_end(void)
{
    keep = 0;
    for (unsigned i = 0; i < SLAB_CLASSES; i++)
        shorten(&lists[i], lists[i].count);
}
