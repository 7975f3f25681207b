#pragma once
/* Which connections take more turns of their loop than they give it work. A front end counts what a connection had it do since it last
 * sent a whole request, was sent an answer, or brought much of a message: reads of a few bytes, frames that carry no data. Past a
 * number that honest clients do not come to, it goes to the slow lane of the loop (os/loop.h), where it is served on, a little later;
 * with its next request it comes back. docs/internals/hostile.md */
#include "os/loop.h"

#define TURNS_FREE  64u   /* as long as it counts so many it has the benefit of the doubt */
#define TURNS_READ  8u    /* a read that brings little counts as so many; a frame as one */
#define TURNS_BYTES 512   /* a read, or a frame of data, that brings so many brings much */
#define TURNS_WORTH 2048u /* of a message: so many bytes make up for one */
#define TURNS_CALL  3u    /* a call that was opened for nothing */

/* turns_judge - move the connection that w watches to the lane where it belongs.
 * count  since it was last of use */
static inline void turns_judge(struct loop *l, struct loop_fd *w, uint32_t count)
{
    if ((count > TURNS_FREE) != w->slow)
        loop_slow(l, w, !w->slow);
}

/* Of one connection with many messages on their way: what they bring makes up for the frames between them. Nobody owes more than a few
 * messages make up for. */
static inline void turns_add(uint32_t *count, uint32_t n)
{
    *count = *count + n < 2 * TURNS_FREE ? *count + n : 2 * TURNS_FREE;
}

static inline void turns_make_up(uint32_t *count, uint32_t n)
{
    *count -= n < *count ? n : *count;
}

/* What a connection was told about the server, since it last asked for inference, counts like turns; and while it does not read so much of
 * it, it is told nothing more. */
#define TURNS_UNREAD ((size_t)65536)

static inline void turns_told(size_t *told, size_t bytes)
{
    size_t most = 2 * TURNS_FREE * TURNS_WORTH;
    *told = bytes < most - *told ? *told + bytes : most;
}

static inline uint32_t turns_of(uint32_t count, size_t told)
{
    return count + (uint32_t)(told / TURNS_WORTH);
}

/* The same of a front end on a worker: connections that came and went and never sent a request, less those that did. Where they are
 * many, new ones begin in the slow lane, and are accepted from there. */
static inline void turns_stranger_gone(uint32_t *strangers)
{
    if (*strangers < 2 * TURNS_FREE)
        *strangers += TURNS_READ;
}

static inline void turns_stranger_known(uint32_t *strangers)
{
    if (*strangers)
        *strangers -= TURNS_READ;
}
