#pragma once
/* Memory with one lifetime, for example that of a request. Pieces are not freed one by one;
 * cleanups run when the arena ends. One thread at a time. Chunks double up to 64 KiB; a larger
 * piece gets its own chunk. */
#include <stddef.h>

struct arena_chunk;
struct arena_cleanup;
struct budget_account;

struct arena {
    char *cur;
    char *end;
    struct arena_chunk *chunks;
    struct arena_cleanup *cleanups;
    size_t next_chunk_bytes;
    struct budget_account *account; /* charged for the arena; NULL = none */
    size_t held;                    /* bytes that the account holds for this arena */
};

/* arena_init - start with memory of the caller (may be NULL, 0), which is used before any chunk
 * is allocated. */
void arena_init(struct arena *a, void *first, size_t first_bytes);

/* arena_fini - run the cleanups, last added first, and free every chunk. */
void arena_fini(struct arena *a);

/* arena_account - charge an account until the arena ends: for all memory that the arena
 * allocates from now on, and for `bytes` that it already has. */
void arena_account(struct arena *a, struct budget_account *account, size_t bytes);

/* arena_try_alloc - n bytes, not cleared, aligned to `align` (a power of two); NULL if there is
 * no memory, or its account has no room. */
void *arena_try_alloc(struct arena *a, size_t n, size_t align);

/* arena_alloc, arena_zalloc - the same for sizes that the server chooses; never NULL (see
 * mem.h). Aligned to 8. */
__attribute__((returns_nonnull)) void *arena_alloc(struct arena *a, size_t n);
__attribute__((returns_nonnull)) void *arena_zalloc(struct arena *a, size_t n);

/* arena_strndup - a copy that ends in NUL. */
__attribute__((returns_nonnull)) char *arena_strndup(struct arena *a, const char *s, size_t n);

/* arena_on_end - call fn(arg) in arena_fini. */
void arena_on_end(struct arena *a, void (*fn)(void *arg), void *arg);
