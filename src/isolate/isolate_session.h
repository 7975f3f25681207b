#pragma once
/* One process of an isolated model as the parent sees it: sockets, shared memory, orders.
 * Private to isolate/. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attribute;
struct buf;
struct isolate_lane;
struct isolate_session;
struct isolate_settings;
struct strbuf;
struct usage;

/* The answer to an order. */
struct isolate_reply {
    struct err *err; /* the child's error, which the caller takes; NULL = success */
    bool done;
    struct attribute *attributes; /* filled from ATTRIBUTES; NULL = not expected */
    int *policy;                  /* filled with attributes */
    /* filled from CONFIG, freed by the caller (mem_free); NULL = not expected */
    char **config;
    struct usage *usage; /* filled from USAGE; NULL = not expected */
};

/* isolate_session_new - start a process. It ends when the calling thread ends, see
 * spawn_die_with_parent.
 * model    the model's name for messages; borrowed
 * program  the executable that runs isolate_child_run
 * ret      one reference */
struct err *isolate_session_new(const char *model, const char *program,
                                const struct isolate_settings *settings,
                                struct isolate_session **ret);

struct isolate_session *isolate_session_ref(struct isolate_session *s);

/* isolate_session_unref - the last reference gives all memory back. The process was reaped. Any
 * thread. NULL is fine. */
void isolate_session_unref(struct isolate_session *s);

/* isolate_session_end - shut down both directions: threads that wait for an answer stop waiting.
 * Any thread; may be called again. */
void isolate_session_end(struct isolate_session *s);

/* isolate_session_add_lane - let the child start a thread that takes orders; the session owns
 * the lane. One thread at a time.
 * ret     NULL without an error: the process has ended
 * errors  INTERNAL without descriptors; UNAVAILABLE if the child cannot start a thread */
struct err *isolate_session_add_lane(struct isolate_session *s, struct isolate_lane **ret);

/* isolate_session_drop_lane - end the lane's thread. */
void isolate_session_drop_lane(struct isolate_session *s, struct isolate_lane *lane);

/* isolate_session_begin - the buffer for an order to a lane.
 * isolate_session_order - send the order and wait until it is done. One thread at a time for a
 * lane. Blocks.
 * returns  false: the process has ended or broke the protocol; reply->err is NULL then */
struct strbuf *isolate_session_begin(struct isolate_lane *lane, uint64_t order);
bool isolate_session_order(struct isolate_session *s, struct isolate_lane *lane,
                           struct isolate_reply *reply);

/* isolate_session_take - get room for inputs in shared memory, charged to the budget.
 * isolate_session_give - give it back.
 * errors  UNAVAILABLE, naming the limit */
struct err *isolate_session_take(struct isolate_session *s, uint64_t bytes, uint64_t *ret_offset);
void isolate_session_give(struct isolate_session *s, uint64_t offset, uint64_t bytes);

/* isolate_session_output - an output that the child wrote, as a buffer. Freeing the buffer gives
 * the place back. The child's values are checked.
 * ret     NULL: the budget is spent, or *ret_bad is true because the place is invalid */
struct buf *isolate_session_output(struct isolate_session *s, uint64_t slot, uint64_t offset,
                                   uint64_t bytes, bool *ret_bad);

/* isolate_session_drop_output - give back an output that nobody wants. Returns false if the
 * place is invalid. */
bool isolate_session_drop_output(struct isolate_session *s, uint64_t slot, uint64_t offset,
                                 uint64_t bytes);

/* isolate_session_trim - give idle shared memory back to the system. Returns true if some is
 * still warm. */
bool isolate_session_trim(struct isolate_session *s);
