#include "base/arena.h"

#include "base/budget.h"
#include "base/check.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FIRST_CHUNK_BYTES ((size_t)2048)
#define MAX_CHUNK_BYTES   ((size_t)65536)

struct arena_chunk {
    struct arena_chunk *next;
    _Alignas(16) char bytes[];
};

struct arena_cleanup {
    struct arena_cleanup *next;
    void (*fn)(void *arg);
    void *arg;
};

void arena_init(struct arena *a, void *first, size_t first_bytes)
{
    *a = (struct arena){.cur = first,
                        .end = first ? (char *)first + first_bytes : NULL,
                        .next_chunk_bytes = FIRST_CHUNK_BYTES};
}

void arena_account(struct arena *a, struct budget_account *account, size_t bytes)
{
    a->account = account;
    a->held = bytes;
    if (bytes)
        budget_hold(account, bytes);
}

void arena_fini(struct arena *a)
{
    for (struct arena_cleanup *c = a->cleanups; c; c = c->next)
        c->fn(c->arg);
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;
        mem_free(a->chunks);
        a->chunks = next;
    }
    if (a->held)
        budget_drop(a->account, a->held);
    arena_init(a, NULL, 0);
}

/* Makes a chunk; NULL only if may_fail. */
static struct arena_chunk *new_chunk(struct arena *a, size_t bytes, bool may_fail)
{
    size_t all = sizeof(struct arena_chunk) + bytes;
    if (!may_fail)
        budget_hold(a->account, all);
    else if (!budget_take(a->account, all))
        return NULL;
    struct arena_chunk *chunk = may_fail ? mem_try_alloc(all, 16) : mem_alloc_aligned(all, 16);
    if (!chunk) {
        budget_drop(a->account, all);
        return NULL;
    }
    a->held += all;
    chunk->next = a->chunks;
    a->chunks = chunk;
    return chunk;
}

static char *align_up(char *p, size_t align)
{
    return p + (-(uintptr_t)p & (align - 1));
}

/* Makes a chunk for a piece that did not fit. A large piece gets its own chunk, and the current
 * chunk stays in use. */
__attribute__((noinline)) static void *alloc_slow(struct arena *a, size_t n, size_t align,
                                                  bool may_fail)
{
    if (n > SIZE_MAX / 2)
        return NULL;
    size_t need = n + align;
    bool alone = need > a->next_chunk_bytes / 2;
    size_t bytes = alone ? need : a->next_chunk_bytes;
    struct arena_chunk *chunk = new_chunk(a, bytes, may_fail);
    if (!chunk)
        return NULL;
    char *p = align_up(chunk->bytes, align);
    if (!alone) {
        a->cur = p + n;
        a->end = chunk->bytes + bytes;
    }
    if (a->next_chunk_bytes < MAX_CHUNK_BYTES)
        a->next_chunk_bytes *= 2;
    return p;
}

/* Inlined, because a request allocates a dozen pieces whose sizes and alignments are mostly
 * constants. */
__attribute__((always_inline)) static inline void *alloc(struct arena *a, size_t n, size_t align,
                                                         bool may_fail)
{
    if (a->cur) {
        char *p = align_up(a->cur, align);
        if (p <= a->end && n <= (size_t)(a->end - p)) {
            a->cur = p + n;
            return p;
        }
    }
    return alloc_slow(a, n, align, may_fail);
}

void *arena_try_alloc(struct arena *a, size_t n, size_t align)
{
    return alloc(a, n, align, true);
}

void *arena_alloc(struct arena *a, size_t n)
{
    void *p = alloc(a, n, 8, false);
    CHECK(p && "out of memory");
    return p;
}

void *arena_zalloc(struct arena *a, size_t n)
{
    return memset(arena_alloc(a, n), 0, n);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *copy = alloc(a, n + 1, 1, false);
    CHECK(copy && "out of memory");
    if (n)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

void arena_on_end(struct arena *a, void (*fn)(void *arg), void *arg)
{
    struct arena_cleanup *c = arena_alloc(a, sizeof(*c));
    *c = (struct arena_cleanup){.next = a->cleanups, .fn = fn, .arg = arg};
    a->cleanups = c;
}
