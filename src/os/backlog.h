#pragma once
/* How many messages wait for a loop, and whoever posts more than it handles waits until it has
 * handled some. Otherwise who posts and the loop share a processor by slices of milliseconds, and
 * so long all others wait that the loop serves. */
#include "os/mutex.h"

/* Handling one takes some microseconds, and so does waking whoever waits. */
#define BACKLOG_MOST    256u /* messages; who has posted more waits */
#define BACKLOG_FEW     128u
#define BACKLOG_LONGEST TIME_MS(10)

struct backlog {
    atomic_uint count;  /* messages that were posted and not handled yet */
    atomic_bool wanted; /* somebody waits */
    struct mutex lock;
    struct mutex_cond room;
};

void backlog_init(struct backlog *b);
void backlog_fini(struct backlog *b);

/* backlog_add - one message is about to be posted. Any thread.
 * backlog_drop - so many were handled. The owner of the messages only. */
void backlog_add(struct backlog *b);
void backlog_drop(struct backlog *b, unsigned count);

/* backlog_wait_for_room - if more than BACKLOG_MOST wait, wait until BACKLOG_FEW do, but no longer
 * than BACKLOG_LONGEST: an owner that is held up by other work must not hold up the caller. Any
 * thread but the owner. */
void backlog_wait_for_room(struct backlog *b);
