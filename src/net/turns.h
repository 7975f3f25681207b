#pragma once
/* Finds connections that take more turns of their loop than they have useful work. A front end
 * counts what a connection made it do (reads of a few bytes, frames without data) since the
 * connection last sent a whole request, got an answer, or sent much of a message. Above a number
 * that normal clients do not reach, the connection goes to the slow lane of the loop
 * (os/loop.h). It is still served there, but later; its next request brings it back. A
 * connection that has sent more than is read in one turn continues in the busy lane, so that
 * clients which wait for a single answer come first. A new connection begins in the busy lane,
 * so that many new connections at once do not delay older ones. docs/internals/hostile.md */
#include "os/clock.h"
#include "os/loop.h"
#include "server/worker.h"

#define TURNS_FREE  64u   /* below this count a connection is trusted */
#define TURNS_READ  8u    /* a read of few bytes counts this much; a frame counts 1 */
#define TURNS_BYTES 512   /* a read, or a frame of data, with this many bytes is useful */
#define TURNS_WORTH 2048u /* this many bytes of a message reduce the count by 1 */
#define TURNS_CALL  3u    /* a call that was opened for nothing counts this much */

/* turns_lane - the lane that a connection belongs to.
 * turns_judge - move the connection to that lane.
 * count  the count since it was last useful
 * more   it probably has more to do right now, or is new */
static inline enum loop_lane_id turns_lane(uint32_t count, bool more)
{
    return count > TURNS_FREE ? LOOP_LANE_SLOW : more ? LOOP_LANE_BUSY : LOOP_LANE_FRONT;
}

static inline void turns_judge(struct loop *l, struct loop_fd *w, uint32_t count, bool more)
{
    loop_move(l, w, turns_lane(count, more));
}

/* turns_end_later - giving up many requests takes as long as serving some. If many such
 * connections end at once, they do it one by one, in the busy lane. Returns false if there is no
 * descriptor for that lane, or if the connection has already waited there: it ends now.
 * many  the connection ends, and has many requests in flight */
static inline bool turns_end_later(struct loop *l, struct loop_fd *w, bool many)
{
    if (!many || w->lane != LOOP_LANE_FRONT)
        return false;
    loop_move(l, w, LOOP_LANE_BUSY);
    return w->lane == LOOP_LANE_BUSY;
}

/* How much is read from a connection in a turn. The work for a few kilobytes differs: they may
 * be many small requests or a piece of a large one. So after a full read, the CPU time of its
 * turn decides how much is read next time. Where other connections were read lately they wait
 * for that turn, so it is long after TURNS_SHARE_LONG. A connection that is alone may take
 * TURNS_SHARE_ALONE: the 64 small calls that it has in flight through an ensemble take 300 us,
 * and each costs 15 % more if they are read in two turns. A turn is short up to half of that. */
#define TURNS_SHARE_LEAST ((size_t)512)
#define TURNS_SHARE_LONG  TIME_US(200)
#define TURNS_SHARE_ALONE TIME_US(400)
#define TURNS_ALONE_AFTER TIME_MS(100)

struct turns_share {
    size_t bytes;
    time_ns full;  /* the turn of a full read; 0 = the read was not full */
    time_ns began; /* CPU time of the thread when the read ended, or began */
    time_ns took;  /* what the last full read took, if neither long nor short; else 0 */
    time_ns most;  /* a turn that takes more is long */
};

/* turns_share_read - a read brought `got` bytes. If they are the rest after a full read, and all
 * of them together take no long turn, they are read at once from then on: the next time they
 * come, the connection stays in front.
 * turns_share_done - the work of that read is done, as far as possible in this turn; in a later
 * turn it has no effect.
 * turns_share_began - a read that was full counts itself, too: it began at this CPU time. A long
 * piece of a message is copied to fresh memory, which takes longer than what follows.
 * turns_share_grow - a full read belonged to a single message.
 * reader: of the connection's loop. most: the most that may be read at once. */
static inline void turns_share_grow(struct turns_share *share, size_t most)
{
    share->bytes = 2 * share->bytes < most ? 2 * share->bytes : most;
}

static inline time_ns turns_share_most(const struct turns_share *share,
                                       struct worker_reader *reader, time_ns now)
{
    if (reader->last != share)
        *reader = (struct worker_reader){.last = share, .since = now};
    return now - reader->since > TURNS_ALONE_AFTER ? TURNS_SHARE_ALONE : TURNS_SHARE_LONG;
}

static inline void turns_share_read(struct turns_share *share, struct worker_reader *reader,
                                    const struct loop *l, size_t got, size_t most)
{
    time_ns took = share->took;
    share->most = turns_share_most(share, reader, loop_now(l));
    share->full = 0;
    share->took = 0;
    if (got >= share->bytes) {
        share->full = loop_now(l);
        share->began = clock_thread_ns();
    } else if (took && took + took * got / share->bytes <= share->most) {
        turns_share_grow(share, most);
    }
}

static inline void turns_share_began(struct turns_share *share, time_ns began)
{
    if (share->full)
        share->began = began;
}

static inline void turns_share_done(struct turns_share *share, const struct loop *l, size_t most)
{
    bool known = share->full && share->full == loop_now(l);
    share->full = 0;
    if (!known)
        return;
    time_ns took = clock_thread_ns() - share->began;
    if (took > share->most && share->bytes > TURNS_SHARE_LEAST)
        share->bytes /= 2;
    else if (took < share->most / 2 && share->bytes < most)
        turns_share_grow(share, most);
    else if (took <= share->most)
        share->took = took;
}

/* For a connection with many messages in flight: the data of its messages makes up for the
 * frames between them. The count is limited, so that a few messages can always reduce it to 0. */
static inline void turns_add(uint32_t *count, uint32_t n)
{
    *count = *count + n < 2 * TURNS_FREE ? *count + n : 2 * TURNS_FREE;
}

static inline void turns_make_up(uint32_t *count, uint32_t n)
{
    *count -= n < *count ? n : *count;
}

/* turns_frame - a frame of HTTP/2 came, with this much data. */
static inline void turns_frame(uint32_t *count, size_t data)
{
    if (data >= TURNS_BYTES)
        turns_make_up(count, (uint32_t)(data / TURNS_WORTH));
    else
        turns_add(count, 1);
}

/* If more than this is still to come of a message, other connections do not wait for its next
 * piece, however many such messages there are. */
#define TURNS_LONG ((size_t)256 << 10)

/* What a connection was told about the server since its last inference counts like turns. While
 * this many bytes are unread by the client, it is told nothing more. */
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

/* The same for a front end on a worker: the number of connections that ended without a request,
 * minus those that sent one. If there are many, new connections begin in the slow lane, and are
 * accepted there. */
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
