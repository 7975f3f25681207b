#pragma once
/* Which instances may execute now, when they need resources of which there is not enough for
 * all: named counts, each of the whole server (global) or of one device. A passive struct, as
 * the batcher is (batching/batcher.h): no thread, no clock, no lock of its own; the caller of
 * every function holds one lock for all of them.
 *
 * How much there is of a resource was said by the command line, for all resources or for none;
 * where nothing was said it is the largest count that any instance asks for.
 *
 * An instance is idle, waits, or holds what it needs. Those that wait stand in an order: the one
 * with the lowest scaled priority (executions x priority) first, then who waits longer. Nobody
 * takes what one before it in that order needs, everything else may be had: an instance waits
 * only for others that share a resource with it. Two things keep counts of the past from
 * shutting somebody out:
 *
 *   - Who begins to wait has a scaled priority of at least the highest with which somebody got
 *     some of the resource.
 *   - Who was overtaken too often, by instances that came later and took what it lacks, goes to
 *     the front. The limit is what its priority and the number of its rivals can explain.
 *
 * source  docs/decisions/0090-rate-limiter.md */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate_limiter;
struct rate_limiter_instance;

#define RATE_LIMITER_EVERY_DEVICE (-1)

/* What there is of a resource. For a global one the largest count that is said for any device
 * counts. */
struct rate_limiter_supply {
    const char *name;
    uint64_t count;
    int32_t device; /* or RATE_LIMITER_EVERY_DEVICE */
};

/* What an instance needs of a resource while it executes. */
struct rate_limiter_need {
    const char *name;
    uint64_t count;
    bool global;
};

struct rate_limiter_terms {
    const struct rate_limiter_need *needs; /* of one name the last one counts */
    size_t need_count;
    int32_t device;
    uint32_t priority; /* 0 counts as 1 */
};

enum rate_limiter_state {
    RATE_LIMITER_IDLE,
    RATE_LIMITER_WAITS,
    RATE_LIMITER_HOLDS,
};

/* rate_limiter_new - never NULL; no instance is in it.
 * supplies  copied; none = the largest count that is asked for decides */
struct rate_limiter *rate_limiter_new(const struct rate_limiter_supply *supplies, size_t count);

/* rate_limiter_free - every instance was removed. NULL is fine. */
void rate_limiter_free(struct rate_limiter *l);

/* rate_limiter_add - an instance more, idle; counts may grow by it: ask rate_limiter_next.
 * terms   copied
 * owner   what rate_limiter_owner returns
 * errors  INVALID_ARG, in the reference's words: more is needed than there is, or a name stands
 *         for a global resource and for one of a device; nothing changed then. Cannot fail
 *         without needs */
struct err *rate_limiter_add(struct rate_limiter *l, const struct rate_limiter_terms *terms,
                             void *owner, struct rate_limiter_instance **ret);

/* rate_limiter_remove - forget it, whatever its state; what it held is free: ask
 * rate_limiter_next. NULL is fine. */
void rate_limiter_remove(struct rate_limiter_instance *i);

/* rate_limiter_want - an idle one has something to execute: it waits. Ask rate_limiter_next. */
void rate_limiter_want(struct rate_limiter_instance *i);

/* rate_limiter_again - one that executed has more to execute: it gives back what it held, and
 * waits. It was never away, so its scaled priority is just what it has executed. Ask
 * rate_limiter_next. */
void rate_limiter_again(struct rate_limiter_instance *i);

/* rate_limiter_done - it is idle: it waits no longer, or gives back what it held. Whoever has
 * more to execute says rate_limiter_again instead: else all others come first.
 * executed  it held and did execute, which counts */
void rate_limiter_done(struct rate_limiter_instance *i, bool executed);

/* rate_limiter_next - the next one that waited and now holds what it needs; NULL = no other. Ask
 * until then. */
struct rate_limiter_instance *rate_limiter_next(struct rate_limiter *l);

enum rate_limiter_state rate_limiter_state(const struct rate_limiter_instance *i);
void *rate_limiter_owner(const struct rate_limiter_instance *i);

/* rate_limiter_scaled - its scaled priority: the lower, the sooner. */
uint64_t rate_limiter_scaled(const struct rate_limiter_instance *i);

/* rate_limiter_available - how much there is of a resource, and in *ret_in_use how much of that
 * is held; 0 and 0 when no instance needs it. device is not looked at for a global one. */
uint64_t rate_limiter_available(const struct rate_limiter *l, const char *name, bool global,
                                int32_t device, uint64_t *ret_in_use);
