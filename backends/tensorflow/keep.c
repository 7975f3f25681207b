#include "keep.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { ALIGN = 64 };

/* The most memory that is kept: in one piece, and in all. */
#define LARGEST_BYTES ((size_t)2 << 20)
#define ALL_BYTES     ((size_t)4 << 20)

/* The header in front of a piece. */
struct piece {
    _Alignas(ALIGN) struct piece *next;
    size_t room;
};

struct keep {
    pthread_mutex_t lock; /* a leaf; guards the rest */
    struct piece *spare;
    size_t spare_bytes;
    size_t out; /* pieces in use */
    bool ended;
};

struct keep *keep_new(void)
{
    struct keep *keep = calloc(1, sizeof *keep);
    if (keep)
        pthread_mutex_init(&keep->lock, NULL);
    return keep;
}

static void tensorflow_keep_free_pieces(struct piece *first)
{
    while (first) {
        struct piece *next = first->next;
        free(first);
        first = next;
    }
}

static void free_keep(struct keep *keep)
{
    pthread_mutex_destroy(&keep->lock);
    free(keep);
}

void keep_end(struct keep *keep)
{
    if (!keep)
        return;
    pthread_mutex_lock(&keep->lock);
    struct piece *spare = keep->spare;
    keep->spare = NULL;
    keep->ended = true;
    bool last = keep->out == 0;
    pthread_mutex_unlock(&keep->lock);
    tensorflow_keep_free_pieces(spare);
    if (last)
        free_keep(keep);
}

/* A spare piece that is large enough, and not much larger. */
static struct piece *take_spare(struct keep *keep, size_t size)
{
    for (struct piece **at = &keep->spare; *at; at = &(*at)->next) {
        struct piece *piece = *at;
        if (piece->room < size || piece->room / 2 > size)
            continue;
        *at = piece->next;
        keep->spare_bytes -= piece->room;
        return piece;
    }
    return NULL;
}

static struct piece *make_piece(size_t size)
{
    if (size > SIZE_MAX - 2 * ALIGN - sizeof(struct piece))
        return NULL;
    size_t room = (size / ALIGN + 1) * ALIGN;
    struct piece *piece = aligned_alloc(ALIGN, sizeof *piece + room);
    if (piece)
        piece->room = room;
    return piece;
}

void *keep_take(struct keep *keep, size_t size)
{
    pthread_mutex_lock(&keep->lock);
    struct piece *piece = take_spare(keep, size);
    keep->out++;
    pthread_mutex_unlock(&keep->lock);
    if (!piece)
        piece = make_piece(size);
    if (piece)
        return piece + 1;
    pthread_mutex_lock(&keep->lock);
    keep->out--;
    pthread_mutex_unlock(&keep->lock);
    return NULL;
}

void keep_give(void *data, size_t size, void *of)
{
    struct keep *keep = of;
    struct piece *piece = (struct piece *)data - 1;
    (void)size;
    pthread_mutex_lock(&keep->lock);
    bool stays = !keep->ended && piece->room <= LARGEST_BYTES;
    struct piece *unused = NULL;
    /* If there is no room, drop a spare piece; its size may not be used any more. */
    if (stays && piece->room > ALL_BYTES - keep->spare_bytes) {
        unused = keep->spare;
        keep->spare = NULL;
        keep->spare_bytes = 0;
    }
    if (stays) {
        piece->next = keep->spare;
        keep->spare = piece;
        keep->spare_bytes += piece->room;
    }
    bool last = --keep->out == 0 && keep->ended;
    pthread_mutex_unlock(&keep->lock);
    tensorflow_keep_free_pieces(unused);
    if (!stays)
        free(piece);
    if (last)
        free_keep(keep);
}
