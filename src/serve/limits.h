#pragma once
/* The rate limiter around the runners: whoever is to execute on an instance with a seat has to hold its resources meanwhile. Which of
 * those that wait goes first is the pure rate limiter's to say (sched/rate_limiter.h).
 *
 * A version has seats for all its runners or for none: none unless the server limits rates (--rate-limit) and one of its instance
 * groups names resources, or a priority other than 1. Such a version never executes inline. A runner without a seat pays one branch. */
#include "base/err.h"
#include "os/clock.h"
#include "sched/rate_limiter.h"

#include <stdbool.h>
#include <stddef.h>

struct Inference__ModelConfig;
struct limits;
struct limits_seat;
struct plugin_instance;
struct runner;
struct serve_version;

/* limits_new - for one server; supplies as for rate_limiter_new.
 * limits_free - no seat is left. NULL is fine. */
struct limits *limits_new(const struct rate_limiter_supply *supplies, size_t count);
void limits_free(struct limits *l);

/* limits_apply - whether instances with these groups need seats. NULL: nothing is limited. */
bool limits_apply(const struct limits *l, const struct Inference__ModelConfig *proto);

/* limits_seat_new - a seat for an instance, by what its group says. Any thread, no lock.
 * errors  INVALID_ARG, as rate_limiter_add. None without resources */
struct err *limits_seat_new(struct limits *l, const struct plugin_instance *i,
                            struct limits_seat **ret);

/* limits_seat_free - nobody waits on it; what it holds is free then. NULL is fine. */
void limits_seat_free(struct limits_seat *s);

/* limits_hold, limits_release - for an execution that no runner does. Blocks until what is needed is there. NULL is fine. */
void limits_hold(struct limits_seat *s);
void limits_release(struct limits_seat *s);

/* limits_seat_runners - the version's instances are those of this configuration from now on: where it needs seats, every runner gets
 * one that has none yet. A version that had seats keeps them. Caller holds v->lock. */
void limits_seat_runners(struct serve_version *v, const struct Inference__ModelConfig *proto);

/* limits_turn - what a runner's thread does in one round, in place of its ordinary turn: hold, take one batch, execute it, give back,
 * deliver. Caller holds v->lock; it is released meanwhile.
 * ret_wake  as batcher_take, where false is returned
 * returns   false: there was nothing to do, and whatever the queue says holds still */
bool limits_turn(struct runner *r, time_ns *ret_wake);

/* limits_quit - the runner's thread ends: it wants nothing any more. NULL is fine. */
void limits_quit(struct limits_seat *s);

/* limits_nudge - a thread that waits on the seat shall look at its queue again. NULL is fine. */
void limits_nudge(struct limits_seat *s);

/* limits_settle - requests left the queue: runners that wait for nothing any more look again. Caller holds v->lock. */
void limits_settle(struct serve_version *v, time_ns now);

/* limits_state, limits_scaled - where a seat stands. Any thread. */
enum rate_limiter_state limits_state(const struct limits_seat *s);
uint64_t limits_scaled(const struct limits_seat *s);

/* limits_pick - the idle runner whose turn it is; NULL = none is idle. Caller holds v->lock; every runner has a seat. */
struct runner *limits_pick(const struct serve_version *v);
