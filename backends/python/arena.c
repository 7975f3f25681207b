#include "arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link.h"

enum { ARENA_ALIGN = 64, ARENA_FIRST_SPANS = 16 };

/* More than this is given back to the system as soon as nothing is in use. */
static const uint64_t ARENA_KEPT = 256 << 20;

struct arena_span {
    uint64_t at;
    uint64_t bytes;
    bool used;
};

bool arena_init(struct arena *arena, int memory, uint64_t first, uint64_t growth)
{
    *arena = (struct arena){.memory = memory,
                            .growth = growth,
                            .kept = first > ARENA_KEPT ? first : ARENA_KEPT,
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .cap = ARENA_FIRST_SPANS,
                            .end = LINK_ARENA + first};
    arena->spans = calloc(arena->cap, sizeof *arena->spans);
    if (!arena->spans)
        return false;
    arena->spans[0] = (struct arena_span){.at = LINK_ARENA, .bytes = first};
    arena->count = 1;
    return true;
}

void arena_fini(struct arena *arena)
{
    free(arena->spans);
    *arena = (struct arena){.memory = -1};
}

/* There is room for one more span. */
static bool arena_room(struct arena *arena)
{
    if (arena->count < arena->cap)
        return true;
    struct arena_span *spans = realloc(arena->spans, arena->cap * 2 * sizeof *spans);
    if (!spans)
        return false;
    arena->spans = spans;
    arena->cap *= 2;
    return true;
}

/* Adds to the end what makes it hold so many bytes. */
static bool arena_grow(struct arena *arena, uint64_t bytes)
{
    struct arena_span *last = &arena->spans[arena->count - 1];
    uint64_t there = last->used ? 0 : last->bytes;
    uint64_t more = (bytes - there + arena->growth - 1) / arena->growth * arena->growth;
    if (more > LINK_MAPPED - arena->end || !arena_room(arena) ||
        ftruncate(arena->memory, (off_t)(arena->end + more)) != 0)
        return false;
    last = &arena->spans[arena->count - 1];
    if (last->used)
        arena->spans[arena->count++] = (struct arena_span){.at = arena->end, .bytes = more};
    else
        last->bytes += more;
    arena->end += more;
    return true;
}

/* Takes the first of a free span. */
static bool arena_split(struct arena *arena, size_t i, uint64_t bytes)
{
    if (arena->spans[i].bytes > bytes) {
        if (!arena_room(arena))
            return false;
        struct arena_span *span = &arena->spans[i];
        memmove(span + 2, span + 1, (arena->count - i - 1) * sizeof *span);
        span[1] = (struct arena_span){.at = span->at + bytes, .bytes = span->bytes - bytes};
        span->bytes = bytes;
        arena->count++;
    }
    arena->spans[i].used = true;
    return true;
}

static size_t arena_find_free(const struct arena *arena, uint64_t bytes)
{
    size_t i = 0;
    while (i < arena->count && (arena->spans[i].used || arena->spans[i].bytes < bytes))
        i++;
    return i;
}

uint64_t arena_take(struct arena *arena, uint64_t bytes)
{
    if (bytes > LINK_MAPPED)
        return 0;
    uint64_t whole = (bytes + ARENA_ALIGN) & ~(uint64_t)(ARENA_ALIGN - 1); /* never nothing */
    uint64_t at = 0;
    pthread_mutex_lock(&arena->lock);
    size_t i = arena_find_free(arena, whole);
    if (i == arena->count && arena_grow(arena, whole))
        i = arena->count - 1;
    if (i < arena->count && arena_split(arena, i, whole))
        at = arena->spans[i].at;
    pthread_mutex_unlock(&arena->lock);
    return at;
}

static void arena_join(struct arena *arena, size_t i)
{
    struct arena_span *span = &arena->spans[i];
    span->bytes += span[1].bytes;
    memmove(span + 1, span + 2, (arena->count - i - 2) * sizeof *span);
    arena->count--;
}

bool arena_give(struct arena *arena, uint64_t at)
{
    pthread_mutex_lock(&arena->lock);
    size_t low = 0, high = arena->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (arena->spans[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < arena->count && arena->spans[low].at == at && arena->spans[low].used;
    if (found) {
        arena->spans[low].used = false;
        if (low + 1 < arena->count && !arena->spans[low + 1].used)
            arena_join(arena, low);
        if (low > 0 && !arena->spans[low - 1].used)
            arena_join(arena, low - 1);
        if (arena->count == 1 && arena->spans[0].bytes > arena->kept)
            fallocate(arena->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)(LINK_ARENA + arena->kept),
                      (off_t)(arena->spans[0].bytes - arena->kept));
    }
    pthread_mutex_unlock(&arena->lock);
    return found;
}

bool arena_holds(struct arena *arena, uint64_t at, uint64_t bytes)
{
    pthread_mutex_lock(&arena->lock);
    bool holds = at >= LINK_ARENA && at <= arena->end && bytes <= arena->end - at;
    pthread_mutex_unlock(&arena->lock);
    return holds;
}
