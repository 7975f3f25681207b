#include "base/slab.h"

#include "base/mem.h"

#include <stdatomic.h>

/* The head of a block. It is in a free object, and in front of an object with a token. */
struct head {
    struct head *next;
    uint64_t token; /* the slot; only in front of an object that has one */
};

_Static_assert(sizeof(struct head) == SLAB_HEAD,
               "slab_token finds the slot right before the object");

struct free_list {
    struct head *first;
    unsigned count;
    /* the smallest length of the list since the last slab_trim: that many objects were not
     * needed */
    unsigned unused;
    unsigned keep;   /* the most objects of the list; 0 on threads without lists */
    unsigned period; /* the value of `periods` when the list was last shortened */
    bool tokens;
};

static _Thread_local struct free_list lists[SLAB_KINDS];
static _Thread_local bool trims_itself; /* this thread calls slab_trim */

/* How often slab_trim was called. A thread that does not call it shortens a list when it uses the
 * list for the first time after such a call. Otherwise a thread that frees or takes an object now
 * and then would keep a list that others filled for a minute, scattered over the heap. Relaxed: a
 * thread may see it late. */
static atomic_uint periods;

static struct free_list *list_of(const struct slab *s)
{
    return &lists[s->kind];
}

/* The shelf: full lists of SLAB_KEEP objects, from threads that free more than they take, for
 * threads that take more than they free. The shelf is large, so that the objects of many
 * requests on one thread can go to another thread. If they were freed, they would stay in their
 * thread's heap, and the other thread would allocate more. */
#define SHELF       256u
#define SHELF_TRIMS 3u /* a list that was found by this many trims is not needed */

static struct {
    /* Stored with release and taken by an exchange with acquire, so that the objects' contents
     * are visible. */
    _Atomic(struct head *) first;
    /* Relaxed: the value is the same for all of a kind; a guess is enough. */
    atomic_bool tokens;
    atomic_uint trims;
} shelves[SLAB_KINDS][SHELF];

/* The number of lists on each shelf. Relaxed: only a hint to skip an empty shelf. */
static atomic_uint shelved[SLAB_KINDS];

/* Puts the whole list on the shelf. Returns false if there is no room. */
static bool put_down(const struct slab *s, struct free_list *l)
{
    for (unsigned i = 0; i < SHELF; i++) {
        struct head *none = NULL;
        if (atomic_load_explicit(&shelves[s->kind][i].first, memory_order_relaxed))
            continue;
        atomic_store_explicit(&shelves[s->kind][i].tokens, s->tokens, memory_order_relaxed);
        atomic_store_explicit(&shelves[s->kind][i].trims, 0, memory_order_relaxed);
        if (!atomic_compare_exchange_strong_explicit(&shelves[s->kind][i].first, &none, l->first,
                                                     memory_order_release, memory_order_relaxed))
            continue;
        atomic_fetch_add_explicit(&shelved[s->kind], 1, memory_order_relaxed);
        l->first = NULL;
        l->count = l->unused = 0;
        return true;
    }
    return false;
}

static struct head *pick_up(unsigned index, unsigned i)
{
    if (!atomic_load_explicit(&shelves[index][i].first, memory_order_relaxed))
        return NULL;
    struct head *first =
        atomic_exchange_explicit(&shelves[index][i].first, NULL, memory_order_acquire);
    if (first)
        atomic_fetch_sub_explicit(&shelved[index], 1, memory_order_relaxed);
    return first;
}

/* Fills an empty list from the shelf. Returns false if the shelf is empty. */
static bool refill(const struct slab *s, struct free_list *l)
{
    if (!atomic_load_explicit(&shelved[s->kind], memory_order_relaxed))
        return false;
    for (unsigned i = 0; i < SHELF && !l->first; i++)
        l->first = pick_up(s->kind, i);
    if (!l->first)
        return false;
    l->count = SLAB_KEEP;
    l->tokens = s->tokens;
    return true;
}

#if defined(__SANITIZE_ADDRESS__)

/* The sanitizer's public interface, because gcc does not install its header. */
void __asan_poison_memory_region(const volatile void *begin, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *begin, size_t bytes);

/* While an object is in a list, only its head may be used: whoever still uses the object is
 * reported, as if its memory had been freed. */
static void slab_hide(const struct slab *s, struct head *h)
{
    size_t bytes = (s->tokens ? SLAB_HEAD : 0) + s->object_bytes;
    if (bytes > sizeof(*h))
        __asan_poison_memory_region(h + 1, bytes - sizeof(*h));
}

static void slab_show(const struct slab *s, void *block)
{
    __asan_unpoison_memory_region(block, (s->tokens ? SLAB_HEAD : 0) + s->object_bytes);
}

#else

static void slab_hide(const struct slab *s, struct head *h)
{
    (void)s;
    (void)h;
}

static void slab_show(const struct slab *s, void *block)
{
    (void)s;
    (void)block;
}

#endif

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

/* Frees the first `count` objects of a list. Returns the rest. */
static struct head *free_blocks(struct head *first, unsigned count, bool tokens)
{
    while (count--) {
        struct head *next = first->next;
        free_block(first, tokens);
        first = next;
    }
    return first;
}

static void slab_shorten(struct free_list *l, unsigned by)
{
    l->first = free_blocks(l->first, by, l->tokens);
    l->count -= by;
    l->unused = l->count;
}

/* True if the thread has not shortened the list since the last call of slab_trim. */
static bool is_of_an_old_period(const struct free_list *l)
{
    return l->period != atomic_load_explicit(&periods, memory_order_relaxed);
}

/* Gives back what the list did not need since the last call of slab_trim. */
static void begin_period(struct free_list *l)
{
    if (!is_of_an_old_period(l))
        return;
    if (!trims_itself)
        slab_shorten(l, l->unused);
    l->period = atomic_load_explicit(&periods, memory_order_relaxed);
}

static void *slab_object(const struct slab *s, void *block)
{
    return (char *)block + (s->tokens ? SLAB_HEAD : 0);
}

static void *slab_take_first(const struct slab *s, struct free_list *l)
{
    void *block = l->first;
    l->first = l->first->next;
    if (--l->count < l->unused)
        l->unused = l->count;
    slab_show(s, block);
    return slab_object(s, block);
}

static void slab_put_first(const struct slab *s, struct free_list *l, struct head *h)
{
    h->next = l->first;
    l->first = h;
    l->count++;
    l->tokens = s->tokens;
    slab_hide(s, h);
}

/* slab_alloc and slab_free are short, so that they need no stack; what comes seldom is here. */

__attribute__((noinline)) static void *alloc_seldom(const struct slab *s, struct free_list *l)
{
    begin_period(l);
    if (l->first || (l->keep && refill(s, l)))
        return slab_take_first(s, l);
    return slab_object(s, new_block(s));
}

__attribute__((noinline)) static void free_seldom(const struct slab *s, struct free_list *l,
                                                  struct head *h)
{
    begin_period(l);
    if (l->count >= l->keep && (!l->keep || !put_down(s, l)))
        free_block(h, s->tokens);
    else
        slab_put_first(s, l, h);
}

void *slab_alloc(const struct slab *s)
{
    struct free_list *l = list_of(s);
    if (is_of_an_old_period(l) || !l->first)
        return alloc_seldom(s, l);
    return slab_take_first(s, l);
}

void slab_free(const struct slab *s, void *object)
{
    struct free_list *l = list_of(s);
    struct head *h = (struct head *)((char *)object - (s->tokens ? SLAB_HEAD : 0));
    if (s->tokens)
        token_renew((uint32_t)h->token);
    if (is_of_an_old_period(l) || l->count >= l->keep)
        free_seldom(s, l, h);
    else
        slab_put_first(s, l, h);
}

void slab_thread_begin(void)
{
    for (unsigned i = 0; i < SLAB_KINDS; i++)
        lists[i].keep = SLAB_KEEP;
}

static void age_shelf(unsigned index)
{
    for (unsigned i = 0; i < SHELF; i++)
        if (atomic_load_explicit(&shelves[index][i].first, memory_order_relaxed))
            atomic_fetch_add_explicit(&shelves[index][i].trims, 1, memory_order_relaxed);
}

/* Frees at most `most` lists of a kind that were on the shelf for long. Returns how many. */
static size_t clear_shelf(unsigned index, size_t most)
{
    size_t freed = 0;
    for (unsigned i = 0; i < SHELF && freed < most; i++) {
        if (atomic_load_explicit(&shelves[index][i].trims, memory_order_relaxed) < SHELF_TRIMS)
            continue;
        struct head *first = pick_up(index, i);
        if (!first)
            continue;
        bool tokens = atomic_load_explicit(&shelves[index][i].tokens, memory_order_relaxed);
        free_blocks(first, SLAB_KEEP, tokens);
        freed++;
    }
    return freed;
}

size_t slab_trim_on(void)
{
    size_t freed = 0;
    for (unsigned i = 0; i < SLAB_KINDS && freed < SLAB_CLEAR; i++)
        if (atomic_load_explicit(&shelved[i], memory_order_relaxed))
            freed += clear_shelf(i, SLAB_CLEAR - freed);
    return freed * SLAB_KEEP;
}

size_t slab_trim(void)
{
    size_t freed = 0;
    trims_itself = true;
    atomic_fetch_add_explicit(&periods, 1, memory_order_relaxed);
    for (unsigned i = 0; i < SLAB_KINDS; i++) {
        freed += lists[i].unused;
        slab_shorten(&lists[i], lists[i].unused);
        age_shelf(i);
    }
    return freed + slab_trim_on();
}

void slab_thread_end(void)
{
    for (unsigned i = 0; i < SLAB_KINDS; i++) {
        lists[i].keep = 0;
        slab_shorten(&lists[i], lists[i].count);
    }
}
