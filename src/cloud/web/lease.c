#include "cloud/web/lease.h"

#include "base/log.h"

/* A value is replaced this long before its end, or after three quarters of a short life. */
#define RENEW_BEFORE TIME_S(300)

/* If a fetch fails while the current value is valid, the next fetch comes after this time. */
#define FAILED_PAUSE TIME_S(10)

/* "There is none" from less than this time ago is not asked again. */
#define NONE_IS_NEW TIME_S(1)

void lease_init(struct lease *l, const struct lease_kind *kind, void *owner)
{
    *l = (struct lease){.kind = kind, .owner = owner, .now = clock_now_ns};
    mutex_init(&l->lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&l->changed);
}

void lease_fini(struct lease *l)
{
    mutex_cond_fini(&l->changed);
    mutex_fini(&l->lock);
    err_free(l->failed);
    l->kind->drop(l->value);
}

static bool lease_holds(const struct lease *l)
{
    return l->have && l->now() < l->ends;
}

static void lease_take(struct lease *l, const struct lease_fresh *f)
{
    time_ns life = f->none ? LEASE_NONE_LIFE : f->life;
    time_ns early = life / 4 < RENEW_BEFORE ? life / 4 : RENEW_BEFORE;
    if (f->none || life == TIME_NEVER)
        early = 0;
    l->kind->drop(l->value);
    l->value = f->value;
    l->have = true;
    l->none = f->none;
    l->taken = l->now();
    l->renew = time_later(l->taken, life - early);
    l->ends = time_later(l->taken, life);
}

/* Fetches a value. Lock held, but released during the fetch. */
static struct err *lease_renew(struct lease *l, void *session)
{
    struct lease_fresh f = {.life = TIME_NEVER};
    l->busy = true;
    mutex_unlock(&l->lock);
    struct err *e = l->kind->fetch(l->owner, session, &f);
    mutex_lock(&l->lock);
    l->busy = false;
    l->rounds++;
    err_free(l->failed);
    l->failed = err_copy(e);
    mutex_cond_broadcast(&l->changed);
    bool kept = lease_holds(l) && (e || (f.none && !l->none));
    if (!e && !kept) {
        lease_take(l, &f);
        return NULL;
    }
    l->kind->drop(f.value);
    if (!kept)
        return e;
    LOG_WARN("credentials are not replaced, those there are hold on: %s",
             e ? err_message(e) : "there are none any more");
    l->renew = l->now() + (e ? FAILED_PAUSE : LEASE_NONE_LIFE);
    err_free(e);
    return NULL;
}

struct err *lease_get(struct lease *l, void *session, void **ret)
{
    struct err *e = NULL;
    mutex_lock(&l->lock);
    uint64_t rounds = l->rounds;
    while (l->busy && !lease_holds(l))
        mutex_cond_wait(&l->changed, &l->lock);
    bool good = lease_holds(l) && (l->busy || l->now() < l->renew);
    if (!good && l->rounds != rounds && l->failed)
        /* the fetch that was waited for failed; a second one would take as long */
        e = err_copy(l->failed);
    else if (!good)
        e = lease_renew(l, session);
    if (!e)
        *ret = l->kind->copy(l->value);
    mutex_unlock(&l->lock);
    return e;
}

bool lease_refused(struct lease *l)
{
    mutex_lock(&l->lock);
    bool new_none = l->have && l->none && l->now() - l->taken < NONE_IS_NEW;
    if (!l->busy && !new_none)
        l->have = false;
    bool another = l->busy || !new_none;
    mutex_unlock(&l->lock);
    return another;
}

bool lease_is_none(struct lease *l)
{
    mutex_lock(&l->lock);
    bool none = l->have && l->none;
    mutex_unlock(&l->lock);
    return none;
}
