#pragma once
/* The rate limiter around the runners: whoever is to execute on an instance with a seat has to
 * hold its resources meanwhile. Which of those that wait goes first is the pure rate limiter's to
 * say (limits/rate_limiter.h).
 *
 * It stands around the scheduler of each version of a server that limits rates (--rate-limit). A
 * version has seats for all its runners or for none: none unless one of its instance groups names
 * resources, or a priority other than 1. Such a version never executes inline. */
#include "limits/rate_limiter.h"
#include "serve/features.h"

#include <stddef.h>

struct limits;
struct limits_seat;
struct serve_version;

/* limits_new - for one server; supplies as for rate_limiter_new.
 * limits_free - no seat is left. NULL is fine. */
struct limits *limits_new(const struct rate_limiter_supply *supplies, size_t count);
void limits_free(struct limits *l);

/* limits_wrap - around the scheduler of a version that has not started. NULL: the server limits
 * nothing. */
void limits_wrap(struct limits *l, struct serve_version *v);

/* The same for a server: its own is a struct limits, with --rate-limit. */
extern const struct feature limits_feature;

/* limits_state, limits_scaled - where a seat stands. Any thread. */
enum rate_limiter_state limits_state(const struct limits_seat *s);
uint64_t limits_scaled(const struct limits_seat *s);
