#pragma once
/* One life of the process of an isolated model, as the parent holds it: sockets, shared memory,
 * orders. Private to isolate/. */
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

/* What an order is answered with. */
struct isolate_reply {
    struct err *err; /* the child's, the caller's to take; NULL = done */
    bool done;
    struct attribute *attributes; /* where ATTRIBUTES go; NULL = they are not expected */
    int *policy;                  /* with attributes */
    char **config;       /* where CONFIG goes, the caller's (mem_free); NULL = not expected */
    struct usage *usage; /* where USAGE goes; NULL = not expected */
};

/* isolate_session_new - start a process. Its life depends on the calling thread's: see
 * spawn_die_with_parent.
 * model    how messages name it; borrowed
 * program  that runs isolate_child_run
 * ret      one reference */
struct err *isolate_session_new(const char *model, const char *program,
                                const struct isolate_settings *settings,
                                struct isolate_session **ret);

struct isolate_session *isolate_session_ref(struct isolate_session *s);

/* isolate_session_unref - the last one gives all memory back. The process was reaped. Any
 * thread. NULL is fine. */
void isolate_session_unref(struct isolate_session *s);

/* isolate_session_end - nothing is said any more, in either direction: who waits for an answer
 * stops waiting. Any thread, again is fine. */
void isolate_session_end(struct isolate_session *s);

/* isolate_session_add_lane - a thread of the child's that takes orders, the session's. One
 * thread at a time.
 * ret     NULL without an error: the process is gone
 * errors  INTERNAL without descriptors; UNAVAILABLE when the child has no thread to give */
struct err *isolate_session_add_lane(struct isolate_session *s, struct isolate_lane **ret);

/* isolate_session_drop_lane - its thread ends. */
void isolate_session_drop_lane(struct isolate_session *s, struct isolate_lane *lane);

/* isolate_session_begin - where to put an order to a lane; isolate_session_order - give it, and
 * wait until it is done. One thread at a time for a lane. Blocks.
 * returns  false: the process is gone, or broke the protocol; reply->err is NULL then */
struct strbuf *isolate_session_begin(struct isolate_lane *lane, uint64_t order);
bool isolate_session_order(struct isolate_session *s, struct isolate_lane *lane,
                           struct isolate_reply *reply);

/* isolate_session_take - room for inputs in shared memory, charged to the budget;
 * isolate_session_give - give it back.
 * errors  UNAVAILABLE, naming the limit */
struct err *isolate_session_take(struct isolate_session *s, uint64_t bytes, uint64_t *ret_offset);
void isolate_session_give(struct isolate_session *s, uint64_t offset, uint64_t bytes);

/* isolate_session_output - an output that the child wrote, as a buffer that gives it back. What
 * the child says is checked.
 * ret     NULL: the budget is spent, or the place makes no sense, which *ret_bad tells */
struct buf *isolate_session_output(struct isolate_session *s, uint64_t slot, uint64_t offset,
                                   uint64_t bytes, bool *ret_bad);

/* isolate_session_drop_output - the same for one that nobody wants. false: it makes no sense. */
bool isolate_session_drop_output(struct isolate_session *s, uint64_t slot, uint64_t offset,
                                 uint64_t bytes);

/* isolate_session_trim - give idle shared memory back to the system; returns whether some is
 * still warm. */
bool isolate_session_trim(struct isolate_session *s);
