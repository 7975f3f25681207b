#pragma once
/* Decides which instances may execute now if there are not enough resources for all. A resource
 * is a named count, of the whole server (global) or of one device. It is a passive struct like
 * the batcher (batching/batcher.h): no thread, clock or lock of its own. The caller of every
 * function holds one lock.
 *
 * The command line gives the counts of all resources or of none. Without it, the count of a
 * resource is the largest count that any instance needs.
 *
 * An instance is idle, waits, or holds its resources. Waiting instances are ordered by scaled
 * priority (executions x priority), lowest first, then by waiting time. An instance may take
 * resources only if no instance before it in that order needs them. So an instance waits only
 * for others that share a resource with it. Two rules prevent starvation by counts of the past:
 *
 *   - An instance that begins to wait gets at least the highest scaled priority at which the
 *     resource was taken before.
 *   - An instance that was overtaken too often, by later instances that took what it lacks, goes
 *     to the front. The limit follows from its priority and the number of its rivals.
 *
 * source  docs/decisions/0090-rate-limiter.md */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate_limiter;
struct rate_limiter_instance;

#define RATE_LIMITER_EVERY_DEVICE (-1)

/* The available count of a resource. For a global resource, the largest count given for any
 * device is used. */
struct rate_limiter_supply {
    const char *name;
    uint64_t count;
    int32_t device; /* a device, or RATE_LIMITER_EVERY_DEVICE */
};

/* The count of a resource that an instance needs while it executes. */
struct rate_limiter_need {
    const char *name;
    uint64_t count;
    bool global;
};

struct rate_limiter_terms {
    const struct rate_limiter_need *needs; /* if two have one name, the last one counts */
    size_t need_count;
    int32_t device;
    uint32_t priority; /* 0 counts as 1 */
};

enum rate_limiter_state {
    RATE_LIMITER_IDLE,
    RATE_LIMITER_WAITS,
    RATE_LIMITER_HOLDS,
};

/* rate_limiter_new - never NULL; has no instances yet.
 * supplies  copied; none = the largest count that an instance needs */
struct rate_limiter *rate_limiter_new(const struct rate_limiter_supply *supplies, size_t count);

/* rate_limiter_free - free it; every instance was removed. NULL is fine. */
void rate_limiter_free(struct rate_limiter *l);

/* rate_limiter_add - add an idle instance. Counts may grow, so call rate_limiter_next.
 * terms   copied
 * owner   returned by rate_limiter_owner
 * errors  INVALID_ARG, in the reference's words: it needs more than there is, or a name is used
 *         for a global and for a device resource; nothing has changed then. Cannot fail without
 *         needs */
struct err *rate_limiter_add(struct rate_limiter *l, const struct rate_limiter_terms *terms,
                             void *owner, struct rate_limiter_instance **ret);

/* rate_limiter_remove - forget an instance in any state. The resources that it held are free, so
 * call rate_limiter_next. NULL is fine. */
void rate_limiter_remove(struct rate_limiter_instance *i);

/* rate_limiter_want - an idle instance has work: it waits now. Call rate_limiter_next. */
void rate_limiter_want(struct rate_limiter_instance *i);

/* rate_limiter_again - an instance that executed has more work: it gives its resources back and
 * waits again. It was not idle, so its scaled priority counts only its executions. Call
 * rate_limiter_next. */
void rate_limiter_again(struct rate_limiter_instance *i);

/* rate_limiter_done - the instance becomes idle: it stops waiting, or gives its resources back.
 * If it has more work, call rate_limiter_again instead; otherwise all others go first.
 * executed  it held resources and did execute, which counts */
void rate_limiter_done(struct rate_limiter_instance *i, bool executed);

/* rate_limiter_next - the next instance that waited and now holds its resources; NULL = no
 * other. Call it until it returns NULL. */
struct rate_limiter_instance *rate_limiter_next(struct rate_limiter *l);

enum rate_limiter_state rate_limiter_state(const struct rate_limiter_instance *i);
void *rate_limiter_owner(const struct rate_limiter_instance *i);

/* rate_limiter_scaled - the scaled priority; the lowest goes first. */
uint64_t rate_limiter_scaled(const struct rate_limiter_instance *i);

/* rate_limiter_available - the count of a resource; *ret_in_use is how much of it is held. Both
 * are 0 if no instance needs it. For a global resource, device is ignored. */
uint64_t rate_limiter_available(const struct rate_limiter *l, const char *name, bool global,
                                int32_t device, uint64_t *ret_in_use);
