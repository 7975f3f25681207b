#include "cloud/web/retry.h"

#define FIRST_NS TIME_MS(100)
#define MOST_NS  TIME_S(5)
#define ALL_MOST 1000u

void retry_init(struct retry *r, time_ns now, time_ns limit, uint64_t seed)
{
    *r = (struct retry){.limit = limit, .since = now, .random = seed * 2 + 1};
}

void retry_progress(struct retry *r, time_ns now)
{
    r->since = now;
    r->attempts = 0;
}

static uint64_t next_random(struct retry *r)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return r->random;
}

bool retry_next(struct retry *r, time_ns now, time_ns asked_ns, time_ns *ret_at)
{
    r->all++;
    if (++r->attempts >= RETRY_MAX_ATTEMPTS || r->all >= ALL_MOST)
        return false;
    unsigned doublings = r->attempts - 1 < 6 ? r->attempts - 1 : 6;
    time_ns pause = FIRST_NS << doublings;
    if (pause > MOST_NS)
        pause = MOST_NS;
    pause = pause / 2 + next_random(r) % (pause / 2 + 1);
    if (asked_ns > pause)
        pause = asked_ns;
    time_ns end = r->since + r->limit;
    if (now >= end || pause >= end - now)
        return false;
    *ret_at = now + pause;
    return true;
}

time_ns retry_left(const struct retry *r, time_ns now)
{
    time_ns end = r->since + r->limit;
    return now < end ? end - now : 0;
}
