#pragma once
/* Which connections take more turns of their loop than they give it work. A front end counts
 * what a connection had it do since it last sent a whole request, was sent an answer, or brought
 * much of a message: reads of a few bytes, frames that carry no data. Past a number that honest
 * clients do not come to, it goes to the slow lane of the loop (os/loop.h), where it is served
 * on, a little later; with its next request it comes back. One that has sent more than is read
 * of it in a turn goes on in the busy lane: those that wait for a single answer come first. A
 * new connection begins there, until its first request: many that are opened, and sent much on,
 * at the same moment do not stand before those that were there. docs/internals/hostile.md */
#include "os/clock.h"
#include "os/loop.h"

#define TURNS_FREE  64u   /* as long as it counts so many it has the benefit of the doubt */
#define TURNS_READ  8u    /* a read that brings little counts as so many; a frame as one */
#define TURNS_BYTES 512   /* a read, or a frame of data, that brings so many brings much */
#define TURNS_WORTH 2048u /* of a message: so many bytes make up for one */
#define TURNS_CALL  3u    /* a call that was opened for nothing */

/* turns_lane - where a connection belongs. turns_judge - move it there.
 * count  since it was last of use
 * more   it probably has more to do right now, or is new */
static inline enum loop_lane_id turns_lane(uint32_t count, bool more)
{
    return count > TURNS_FREE ? LOOP_LANE_SLOW : more ? LOOP_LANE_BUSY : LOOP_LANE_FRONT;
}

static inline void turns_judge(struct loop *l, struct loop_fd *w, uint32_t count, bool more)
{
    loop_move(l, w, turns_lane(count, more));
}

/* turns_end_later - giving up many requests takes as long as serving some: where many connections
 * with many end at once, they do it one by one, in the busy lane. false: there is no descriptor for
 * that lane, or it waited there already, and ends now.
 * many  it ends, and has many requests under way */
static inline bool turns_end_later(struct loop *l, struct loop_fd *w, bool many)
{
    if (!many || w->lane != LOOP_LANE_FRONT)
        return false;
    loop_move(l, w, LOOP_LANE_BUSY);
    return w->lane == LOOP_LANE_BUSY;
}

/* How much is read of a connection in a turn. What a few kilobytes cost depends on what they
 * are: many small requests, or a piece of a large one. So where a read brings all that it may,
 * what its turn took of a processor decides about the next. */
#define TURNS_SHARE_LEAST ((size_t)512)
#define TURNS_SHARE_LONG  TIME_US(200)
#define TURNS_SHARE_SHORT TIME_US(100)

struct turns_share {
    size_t bytes;
    time_ns full;  /* the turn in which a read brought so many; 0 = it brought less */
    time_ns began; /* in the thread's time */
};

/* turns_share_read - a read brought so many. turns_share_done - what came of it is done, as far
 * as it can be in this turn; in another turn it tells nothing. turns_share_grow - a full read
 * was of a single message. most: what may be read at once */
static inline void turns_share_read(struct turns_share *share, const struct loop *l, size_t got)
{
    share->full = 0;
    if (got < share->bytes)
        return;
    share->full = loop_now(l);
    share->began = clock_thread_ns();
}

static inline void turns_share_grow(struct turns_share *share, size_t most)
{
    share->bytes = 2 * share->bytes < most ? 2 * share->bytes : most;
}

static inline void turns_share_done(struct turns_share *share, const struct loop *l, size_t most)
{
    bool known = share->full && share->full == loop_now(l);
    share->full = 0;
    if (!known)
        return;
    time_ns took = clock_thread_ns() - share->began;
    if (took > TURNS_SHARE_LONG && share->bytes > TURNS_SHARE_LEAST)
        share->bytes /= 2;
    else if (took < TURNS_SHARE_SHORT && share->bytes < most)
        turns_share_grow(share, most);
}

/* Of one connection with many messages on their way: what they bring makes up for the frames
 * between them. Nobody owes more than a few messages make up for. */
static inline void turns_add(uint32_t *count, uint32_t n)
{
    *count = *count + n < 2 * TURNS_FREE ? *count + n : 2 * TURNS_FREE;
}

static inline void turns_make_up(uint32_t *count, uint32_t n)
{
    *count -= n < *count ? n : *count;
}

/* Of a message of which so much is still to come others do not wait for the next piece, however
 * many such messages there are. */
#define TURNS_LONG ((size_t)256 << 10)

/* What a connection was told about the server, since it last asked for inference, counts like
 * turns; and while it does not read so much of it, it is told nothing more. */
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

/* The same of a front end on a worker: connections that came and went and never sent a request,
 * less those that did. Where they are many, new ones begin in the slow lane, and are accepted
 * from there. */
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
