#include "grpc/grpc_keepalive.h"

#include "server/options/options.h"

#include <limits.h>

/* The minimum between pings of a client without calls, if such pings are not allowed by default. */
#define IDLE_INTERVAL TIME_S(7200)

static time_ns grpc_keepalive_limit(uint32_t ms)
{
    return ms == 0 || ms >= INT_MAX ? TIME_NEVER : TIME_MS(ms);
}

void grpc_keepalive_rules(const struct options *o, struct grpc_keepalive_rules *ret)
{
    *ret = (struct grpc_keepalive_rules){
        .silence = grpc_keepalive_limit(o->grpc_keepalive_ms),
        .answer_within = grpc_keepalive_limit(o->grpc_keepalive_timeout_ms),
        .age = grpc_keepalive_limit(o->grpc_max_age_ms),
        .grace = grpc_keepalive_limit(o->grpc_max_age_grace_ms),
        .min_interval = TIME_MS(o->grpc_min_ping_interval_ms),
        .max_pings = o->grpc_max_pings,
        .max_strikes = o->grpc_max_ping_strikes,
        .without_calls = o->grpc_keepalive_without_calls,
    };
}

static time_ns after(time_ns now, time_ns span)
{
    return span == TIME_NEVER ? TIME_NEVER : now + span;
}

void grpc_keepalive_init(struct grpc_keepalive *k, const struct grpc_keepalive_rules *r,
                         time_ns now, uint64_t random)
{
    *k = (struct grpc_keepalive){.heard = now, .end = after(now, r->age)};
    if (r->age != TIME_NEVER)
        k->end = k->end - r->age / 10 + r->age / 1000 * (random % 201);
}

/* Checks the ping that is not answered yet, or the time without bytes. */
static enum grpc_keepalive_action silence(struct grpc_keepalive *k,
                                          const struct grpc_keepalive_rules *r, time_ns now,
                                          bool calls, time_ns *ret_next)
{
    if (k->pinged) {
        *ret_next = after(k->pinged, r->answer_within);
        return now >= *ret_next ? GRPC_KEEPALIVE_DEAD : GRPC_KEEPALIVE_WAIT;
    }
    *ret_next = after(k->heard, r->silence);
    if (now < *ret_next)
        return GRPC_KEEPALIVE_WAIT;
    bool may = (calls || r->without_calls) && (r->max_pings == 0 || k->pings < r->max_pings);
    *ret_next = now + r->silence;
    if (!may)
        return GRPC_KEEPALIVE_WAIT;
    k->pinged = now;
    k->pings++;
    *ret_next = after(now, r->answer_within);
    return GRPC_KEEPALIVE_PING;
}

enum grpc_keepalive_action grpc_keepalive_due(struct grpc_keepalive *k,
                                              const struct grpc_keepalive_rules *r, time_ns now,
                                              bool calls, time_ns *ret_next)
{
    if (now >= k->end && k->retired)
        return GRPC_KEEPALIVE_CUT;
    if (now >= k->end) {
        k->retired = true;
        k->end = after(now, r->grace);
        *ret_next = now;
        return GRPC_KEEPALIVE_RETIRE;
    }
    enum grpc_keepalive_action a = silence(k, r, now, calls, ret_next);
    *ret_next = *ret_next < k->end ? *ret_next : k->end;
    return a;
}

bool grpc_keepalive_was_pinged(struct grpc_keepalive *k, const struct grpc_keepalive_rules *r,
                               time_ns now, bool calls)
{
    time_ns least = calls || r->without_calls ? r->min_interval : IDLE_INTERVAL;
    bool too_soon = k->was_pinged && now < k->was_pinged + least;
    k->was_pinged = now;
    if (too_soon)
        k->strikes++;
    return r->max_strikes == 0 || k->strikes <= r->max_strikes;
}
