#pragma once
/* The rate limiter around the runners: an instance with a seat must hold its resources while it
 * executes. The pure rate limiter decides which waiting instance is next
 * (limits/rate_limiter.h).
 *
 * It is a wrapper around the scheduler of each version, in a server with --rate-limit. Either
 * all runners of a version have seats or none has. They have seats if an instance group names
 * resources or a priority other than 1. Such a version never executes inline. */
#include "limits/rate_limiter.h"
#include "serve/features.h"

#include <stddef.h>

struct limits;
struct limits_seat;
struct serve_version;

/* limits_new - make the limiter of one server; supplies as for rate_limiter_new.
 * limits_free - free it; no seat is left. NULL is fine. */
struct limits *limits_new(const struct rate_limiter_supply *supplies, size_t count);
void limits_free(struct limits *l);

/* limits_wrap - put the wrapper around the scheduler of a version that has not started. NULL:
 * the server has no limits. */
void limits_wrap(struct limits *l, struct serve_version *v);

/* The feature for a server. Its state is a struct limits, which exists with --rate-limit. */
extern const struct feature limits_feature;

/* limits_state, limits_scaled - the state and the scaled priority of a seat. Any thread. */
enum rate_limiter_state limits_state(const struct limits_seat *s);
uint64_t limits_scaled(const struct limits_seat *s);
