#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for large tensors in the memory that the server shares with a stub. The server alone says
 * what
 * is free; its notes are in its own memory, so that a stub can spoil tensors and nothing else. */

struct arena_span;

struct arena {
    int memory;               /* memfd, borrowed */
    uint64_t growth;          /* it grows by multiples of this */
    uint64_t kept;            /* what stays in memory when all of it is free */
    pthread_mutex_t lock;     /* guards what follows; the innermost */
    struct arena_span *spans; /* in order, without gaps, from LINK_ARENA */
    size_t count, cap;
    uint64_t end;
};

/* arena_init - take over the file behind LINK_ARENA; it is `first` bytes long there.
 * errors  false: no memory */
bool arena_init(struct arena *arena, int memory, uint64_t first, uint64_t growth);

void arena_fini(struct arena *arena);

/* arena_take - find room. Any thread.
 * returns  an offset in the shared memory, aligned to 64; 0 = there is none */
uint64_t arena_take(struct arena *arena, uint64_t bytes);

/* arena_give - give room back. Any thread.
 * returns  false: nothing was taken there */
bool arena_give(struct arena *arena, uint64_t at);

/* arena_holds - whether bytes lie within the file. */
bool arena_holds(struct arena *arena, uint64_t at, uint64_t bytes);
