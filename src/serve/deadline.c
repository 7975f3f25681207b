#include "serve/deadline.h"

#include "base/mem.h"
#include "os/loop.h"
#include "serve/reject.h"
#include "serve/runner.h"
#include "serve/scheduler.h"
#include "serve/version.h"

struct deadline {
    struct serve_version *version;
    struct loop *house;
    struct loop_timer timer; /* used by the house's thread only */
    struct mail mail;
    /* Guarded by version->lock. */
    bool known;    /* the house was told of this deadline, so it may hold the timer */
    bool posted;   /* the mail is in flight */
    time_ns armed; /* when the timer is or will be set; it may fire earlier than needed */
    bool closing;
    bool closed;
    struct mutex_cond done;
};

static void deadline_due(struct loop_timer *t)
{
    struct deadline *d = LIST_ITEM(t, struct deadline, timer);
    struct serve_version *v = d->version;
    struct list dropped;
    list_init(&dropped);
    mutex_lock(&v->lock);
    time_ns now = clock_now_ns();
    v->scheduler->ops.expire(v->scheduler, now, &dropped);
    time_ns next = v->scheduler->ops.next_deadline(v->scheduler);
    d->armed = next;
    runner_wake(v, now);
    mutex_unlock(&v->lock);
    reject_dropped(&dropped);
    if (next != TIME_NEVER)
        loop_timer_set(d->house, &d->timer, next);
}

static void arrived(struct mail *m)
{
    struct deadline *d = LIST_ITEM(m, struct deadline, mail);
    struct serve_version *v = d->version;
    mutex_lock(&v->lock);
    d->posted = false;
    time_ns when = d->armed;
    if (d->closing) {
        loop_timer_clear(d->house, &d->timer);
        d->closed = true;
        mutex_cond_broadcast(&d->done);
        when = TIME_NEVER;
    }
    mutex_unlock(&v->lock);
    if (when != TIME_NEVER)
        loop_timer_set(d->house, &d->timer, when);
}

struct deadline *deadline_new(struct serve_version *v, struct loop *house)
{
    struct deadline *d = MEM_NEW(struct deadline);
    d->version = v;
    d->house = house;
    d->timer = (struct loop_timer)LOOP_TIMER_INIT(deadline_due);
    d->mail.deliver = arrived;
    d->armed = TIME_NEVER;
    mutex_cond_init(&d->done);
    return d;
}

void deadline_watch(struct deadline *d)
{
    const struct scheduler *s = d->version->scheduler;
    time_ns next = s->ops.next_deadline(s);
    if (next >= d->armed || !d->house)
        return;
    d->armed = next;
    if (d->posted)
        return;
    d->posted = true;
    d->known = true;
    loop_post(d->house, &d->mail, &d->mail);
}

void deadline_free(struct deadline *d)
{
    if (!d)
        return;
    struct mutex *lock = &d->version->lock;
    mutex_lock(lock);
    if (d->known) {
        d->closing = true;
        if (!d->posted) {
            d->posted = true;
            loop_post(d->house, &d->mail, &d->mail);
        }
        while (!d->closed)
            mutex_cond_wait(&d->done, lock);
    }
    mutex_unlock(lock);
    mutex_cond_fini(&d->done);
    mem_free(d);
}
