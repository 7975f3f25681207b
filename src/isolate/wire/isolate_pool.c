#include "isolate/wire/isolate_pool.h"

#include "base/check.h"
#include "base/mem.h"
#include "os/mutex.h"

#define ORDERS 32u
#define NONE   UINT32_MAX
/* So much goes back to the system at once: a request that needs the place waits for no more. */
#define STEP_PAGES 1024u

enum state {
    INSIDE, /* no place begins at this page */
    FREE,
    TAKEN,
};

/* The data of one page; only that of a place's first page is used. */
struct page {
    uint32_t next; /* in the list of free places of its order */
    uint32_t prev;
    uint64_t bytes; /* as requested, while taken */
    time_ns given;  /* when it was last used */
    uint8_t order;
    uint8_t state;
    bool warm; /* its memory may contain data of an earlier use */
};

struct isolate_pool {
    struct mutex lock; /* rank LEAF; guards all that follows */
    struct page *pages;
    uint32_t page_count;
    uint32_t free[ORDERS]; /* first free place of 2^n pages */
    uint64_t used;
    uint64_t limit;
    unsigned trims; /* places that are taken only because their memory goes back */
    struct mutex_cond trimmed;
    isolate_pool_forget_fn *forget;
    void *owner;
};

static void push(struct isolate_pool *p, uint32_t at)
{
    struct page *page = &p->pages[at];
    uint32_t first = p->free[page->order];
    page->state = FREE;
    page->prev = NONE;
    page->next = first;
    if (first != NONE)
        p->pages[first].prev = at;
    p->free[page->order] = at;
}

static void unlink_free(struct isolate_pool *p, uint32_t at)
{
    const struct page *page = &p->pages[at];
    if (page->prev == NONE)
        p->free[page->order] = page->next;
    else
        p->pages[page->prev].next = page->next;
    if (page->next != NONE)
        p->pages[page->next].prev = page->prev;
}

struct isolate_pool *isolate_pool_new(uint64_t bytes, uint64_t limit,
                                      isolate_pool_forget_fn *forget, void *owner)
{
    CHECK(bytes % ISOLATE_POOL_PAGE == 0 && bytes >> 43 == 0);
    struct isolate_pool *p = MEM_NEW(struct isolate_pool);
    mutex_init(&p->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&p->trimmed);
    p->page_count = (uint32_t)(bytes / ISOLATE_POOL_PAGE);
    p->pages = mem_zalloc(p->page_count * sizeof(*p->pages));
    p->limit = limit;
    p->forget = forget;
    p->owner = owner;
    for (unsigned i = 0; i < ORDERS; i++)
        p->free[i] = NONE;
    for (uint32_t at = 0; at < p->page_count;) {
        uint32_t left = p->page_count - at;
        uint8_t order = (uint8_t)(31 - __builtin_clz(left));
        uint8_t aligned = (uint8_t)(at ? __builtin_ctz(at) : 31);
        p->pages[at].order = order < aligned ? order : aligned;
        push(p, at);
        at += 1u << p->pages[at].order;
    }
    return p;
}

void isolate_pool_free(struct isolate_pool *p)
{
    if (!p)
        return;
    mutex_cond_fini(&p->trimmed);
    mutex_fini(&p->lock);
    mem_free(p->pages);
    mem_free(p);
}

/* Splits a place until it has the order; the upper halves become free. */
static void cut_down(struct isolate_pool *p, uint32_t at, uint8_t order)
{
    struct page *page = &p->pages[at];
    while (page->order > order) {
        page->order--;
        struct page *upper = page + (1u << page->order);
        upper->order = page->order;
        upper->warm = page->warm;
        upper->given = page->given;
        push(p, (uint32_t)(upper - p->pages));
    }
}

static bool isolate_pool_take_pages(struct isolate_pool *p, uint64_t bytes, uint64_t *ret_offset)
{
    uint64_t pages = (bytes - 1) / ISOLATE_POOL_PAGE + 1;
    if (pages > p->page_count)
        return false;
    uint8_t order = (uint8_t)(pages > 1 ? 32 - __builtin_clz((uint32_t)pages - 1) : 0);
    unsigned from = order;
    while (from < ORDERS && p->free[from] == NONE)
        from++;
    if (from == ORDERS)
        return false;
    uint32_t at = p->free[from];
    unlink_free(p, at);
    cut_down(p, at, order);
    p->pages[at].state = TAKEN;
    p->pages[at].warm = true;
    p->pages[at].bytes = bytes;
    p->used += bytes;
    *ret_offset = (uint64_t)at * ISOLATE_POOL_PAGE;
    return true;
}

bool isolate_pool_take(struct isolate_pool *p, uint64_t bytes, uint64_t *ret_offset)
{
    bool ok = false;
    mutex_lock(&p->lock);
    while (bytes <= p->limit - p->used && !(ok = isolate_pool_take_pages(p, bytes, ret_offset)) &&
           p->trims)
        mutex_cond_wait(&p->trimmed, &p->lock);
    mutex_unlock(&p->lock);
    return ok;
}

/* Makes a place free and merges it with its free neighbours. */
static void isolate_pool_join(struct isolate_pool *p, uint32_t at)
{
    for (;;) {
        struct page *page = &p->pages[at];
        uint32_t other_at = at ^ (1u << page->order);
        struct page *other = &p->pages[other_at];
        if (page->order + 1u >= ORDERS || other_at >= p->page_count || other->state != FREE ||
            other->order != page->order)
            break;
        unlink_free(p, other_at);
        struct page *low = at < other_at ? page : other;
        low->warm = page->warm || other->warm;
        low->given = page->given > other->given ? page->given : other->given;
        (low == page ? other : page)->state = INSIDE;
        low->order++;
        at = (uint32_t)(low - p->pages);
    }
    push(p, at);
}

void isolate_pool_give(struct isolate_pool *p, uint64_t offset, time_ns now)
{
    mutex_lock(&p->lock);
    uint32_t at = (uint32_t)(offset / ISOLATE_POOL_PAGE);
    CHECK(at < p->page_count && p->pages[at].state == TAKEN);
    p->used -= p->pages[at].bytes;
    p->pages[at].given = now;
    isolate_pool_join(p, at);
    mutex_unlock(&p->lock);
}

/* A free place with warm memory that was last used before `before`; NONE if there is none. */
static uint32_t find_warm(const struct isolate_pool *p, time_ns before, bool *ret_others)
{
    for (unsigned order = 0; order < ORDERS; order++)
        for (uint32_t at = p->free[order]; at != NONE; at = p->pages[at].next) {
            if (!p->pages[at].warm)
                continue;
            if (p->pages[at].given < before)
                return at;
            *ret_others = true;
        }
    return NONE;
}

/* Gives the memory of a free place back, by steps. It is taken meanwhile, because the system calls
 * run without the lock. Returns false if somebody waits for a place: the rest stays warm. */
static bool isolate_pool_cool(struct isolate_pool *p, uint32_t at)
{
    uint32_t pages = 1u << p->pages[at].order, step = 0;
    unlink_free(p, at);
    p->pages[at].state = TAKEN;
    p->trims++;
    for (uint32_t done = 0; done < pages && !p->trimmed.waiting; done += step) {
        step = pages - done < STEP_PAGES ? pages - done : STEP_PAGES;
        mutex_unlock(&p->lock);
        p->forget(p->owner, (uint64_t)(at + done) * ISOLATE_POOL_PAGE,
                  (uint64_t)step * ISOLATE_POOL_PAGE);
        mutex_lock(&p->lock);
        p->pages[at].warm = done + step < pages;
    }
    bool all = !p->pages[at].warm;
    isolate_pool_join(p, at);
    p->trims--;
    mutex_cond_broadcast(&p->trimmed);
    return all;
}

bool isolate_pool_trim(struct isolate_pool *p, time_ns before)
{
    bool others = false, all = true;
    mutex_lock(&p->lock);
    uint32_t at;
    while (all && (at = find_warm(p, before, &others)) != NONE)
        all = isolate_pool_cool(p, at);
    mutex_unlock(&p->lock);
    return others || !all;
}

uint64_t isolate_pool_used(struct isolate_pool *p)
{
    mutex_lock(&p->lock);
    uint64_t used = p->used;
    mutex_unlock(&p->lock);
    return used;
}
