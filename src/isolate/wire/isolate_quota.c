#include "isolate/wire/isolate_quota.h"

#include "base/budget.h"
#include "base/check.h"
#include "isolate/wire/isolate_frame.h"

#define LEAST_BYTES ((size_t)4 << 20)

void isolate_quota_init(struct isolate_quota *q)
{
    size_t most = budget_limit() / 8;
    most = most > LEAST_BYTES ? most : LEAST_BYTES;
    mutex_init(&q->lock, MUTEX_RANK_LEAF);
    q->held = 0;
    q->most = most < ISOLATE_FRAME_MAX ? most : ISOLATE_FRAME_MAX;
}

void isolate_quota_fini(struct isolate_quota *q)
{
    CHECK(q->held == 0);
    mutex_fini(&q->lock);
}

static size_t charged(size_t held)
{
    return held > ISOLATE_QUOTA_FREE ? held - ISOLATE_QUOTA_FREE : 0;
}

bool isolate_quota_take(struct isolate_quota *q, size_t n)
{
    if (!q)
        return true;
    mutex_lock(&q->lock);
    bool ok = n <= q->most - q->held && budget_charge(charged(q->held + n) - charged(q->held));
    q->held += ok ? n : 0;
    mutex_unlock(&q->lock);
    return ok;
}

void isolate_quota_give(struct isolate_quota *q, size_t n)
{
    if (!q || !n)
        return;
    mutex_lock(&q->lock);
    budget_release(charged(q->held) - charged(q->held - n));
    q->held -= n;
    mutex_unlock(&q->lock);
}
