#include "limits/limits.h"

#include "base/mem.h"
#include "model/config.h"
#include "os/mutex.h"
#include "plugin/instance.h"
#include "proto/model_config.pb-c.h"
#include "serve/runner.h"
#include "serve/scheduler.h"
#include "serve/submit.h"
#include "serve/version.h"
#include "server/options/options.h"

typedef Inference__ModelInstanceGroup group_proto;

struct limits {
    struct mutex lock; /* rank LEAF; guards rates and every seat */
    struct rate_limiter *rates;
};

/* The wrapper around the scheduler of a version. */
struct limits_around {
    struct scheduler_wrap base;
    struct limits *limits;
    bool limited; /* the version's runners have seats; guarded by its lock */
};

struct limits_seat {
    struct limits *limits;
    struct rate_limiter_instance *rate;
    struct mutex_cond turn; /* signalled when the seat holds its resources or was nudged */
    bool nudged;
};

struct limits *limits_new(const struct rate_limiter_supply *supplies, size_t count)
{
    struct limits *l = MEM_NEW(struct limits);
    mutex_init(&l->lock, MUTEX_RANK_LEAF);
    l->rates = rate_limiter_new(supplies, count);
    return l;
}

void limits_free(struct limits *l)
{
    if (!l)
        return;
    rate_limiter_free(l->rates);
    mutex_fini(&l->lock);
    mem_free(l);
}

static bool names_something(const group_proto *g)
{
    return g->rate_limiter && (g->rate_limiter->n_resources || g->rate_limiter->priority > 1);
}

static struct limits_around *wrap_of(const struct scheduler *s)
{
    return (struct limits_around *)s->wraps[SCHEDULER_LIMITS];
}

/* True if instances of these groups need seats. */
static bool need_seats(const struct Inference__ModelConfig *proto)
{
    for (size_t g = 0; g < proto->n_instance_group; g++)
        if (!proto->instance_group[g]->passive && names_something(proto->instance_group[g]))
            return true;
    return false;
}

/* -- seats -- */

/* Tells every seat that has got its resources. Caller holds the lock. */
static void let_in(struct limits *l)
{
    struct rate_limiter_instance *i;
    while ((i = rate_limiter_next(l->rates)) != NULL) {
        struct limits_seat *s = rate_limiter_owner(i);
        mutex_cond_signal(&s->turn);
    }
}

static void seat_free(struct limits_seat *s)
{
    if (!s)
        return;
    struct limits *l = s->limits;
    mutex_lock(&l->lock);
    rate_limiter_remove(s->rate);
    let_in(l);
    mutex_unlock(&l->lock);
    mutex_cond_fini(&s->turn);
    mem_free(s);
}

static struct err *make_seat(struct limits *l, const struct rate_limiter_terms *terms,
                             struct limits_seat **ret)
{
    struct limits_seat *s = MEM_NEW(struct limits_seat);
    s->limits = l;
    mutex_cond_init(&s->turn);
    mutex_lock(&l->lock);
    struct err *e = rate_limiter_add(l->rates, terms, s, &s->rate);
    let_in(l);
    mutex_unlock(&l->lock);
    if (e) {
        seat_free(s);
        return e;
    }
    *ret = s;
    return NULL;
}

/* Makes the seat of an instance, with the resources that its group names. */
static struct err *seat_of_instance(struct limits *l, const struct plugin_instance *i,
                                    struct limits_seat **ret)
{
    const Inference__ModelRateLimiter *said = i->group->rate_limiter;
    size_t count = said ? said->n_resources : 0;
    struct rate_limiter_need *needs = mem_zalloc((count + 1) * sizeof(*needs));
    for (size_t k = 0; k < count; k++)
        needs[k] = (struct rate_limiter_need){.name = said->resources[k]->name,
                                              .count = said->resources[k]->count,
                                              .global = said->resources[k]->global};
    struct rate_limiter_terms terms = {.needs = needs,
                                       .need_count = count,
                                       .device = i->device,
                                       .priority = said ? said->priority : 1};
    struct err *e = make_seat(l, &terms, ret);
    mem_free(needs);
    return e;
}

static struct err *limits_equip(struct scheduler *s, struct runner *r,
                                const struct Inference__ModelConfig *proto)
{
    struct limits_seat *seat = NULL;
    struct err *e =
        need_seats(proto) ? seat_of_instance(wrap_of(s)->limits, r->instance, &seat) : NULL;
    r->limit = seat;
    return e;
}

/* If the configuration needs seats, gives every runner a seat. A version that had seats keeps
 * them. */
static void limits_commit(struct scheduler *s, const struct Inference__ModelConfig *proto)
{
    struct serve_version *v = s->version;
    struct limits_around *w = wrap_of(s);
    mutex_assert_held(&v->lock);
    static const struct rate_limiter_terms nothing = {.priority = 1};
    w->limited = w->limited || need_seats(proto);
    v->inline_ok = v->inline_ok && !w->limited;
    for (uint32_t i = 0; w->limited && i < v->instances.runner_count; i++) {
        struct limits_seat *seat;
        if (v->instances.runners[i]->limit)
            continue;
        /* without resources no error is possible */
        err_free(make_seat(w->limits, &nothing, &seat));
        v->instances.runners[i]->limit = seat;
    }
}

/* -- holding resources -- */

/* Begins to wait, unless the seat already waits or holds. Caller holds the lock.
 * returns  true if it holds its resources */
static bool ask(struct limits_seat *s)
{
    if (rate_limiter_state(s->rate) == RATE_LIMITER_IDLE) {
        rate_limiter_want(s->rate);
        let_in(s->limits);
    }
    return rate_limiter_state(s->rate) == RATE_LIMITER_HOLDS;
}

/* Gives the resources back. Caller holds the lock. */
static void limits_give_back(struct limits_seat *s, bool executed, bool again)
{
    if (again)
        rate_limiter_again(s->rate);
    else if (rate_limiter_state(s->rate) != RATE_LIMITER_IDLE)
        rate_limiter_done(s->rate, executed);
    let_in(s->limits);
}

static void limits_hold(struct scheduler *scheduler, struct runner *r)
{
    (void)scheduler;
    struct limits_seat *s = r->limit;
    if (!s)
        return;
    mutex_lock(&s->limits->lock);
    while (!ask(s))
        mutex_cond_wait(&s->turn, &s->limits->lock);
    mutex_unlock(&s->limits->lock);
}

static void limits_release(struct scheduler *scheduler, struct runner *r)
{
    (void)scheduler;
    struct limits_seat *s = r->limit;
    if (!s)
        return;
    mutex_lock(&s->limits->lock);
    limits_give_back(s, true, false);
    mutex_unlock(&s->limits->lock);
}

static void want_nothing(struct limits_seat *s)
{
    mutex_lock(&s->limits->lock);
    limits_give_back(s, false, false);
    mutex_unlock(&s->limits->lock);
}

static void limits_quit(struct scheduler *s, struct runner *r)
{
    (void)s;
    if (r->limit)
        want_nothing(r->limit);
}

static void nudge(struct limits_seat *s)
{
    mutex_lock(&s->limits->lock);
    s->nudged = true;
    mutex_cond_signal(&s->turn);
    mutex_unlock(&s->limits->lock);
}

static void limits_nudge(struct scheduler *s, struct runner *r)
{
    (void)s;
    if (r->limit)
        nudge(r->limit);
}

/* -- a turn of a runner -- */

static bool limits_is_ready(struct runner *r, time_ns now, time_ns *ret_wake)
{
    struct scheduler *s = r->version->scheduler;
    return s->ops.ready(s, r, now, ret_wake);
}

/* Clears a nudge from before: it was about the queue, which the caller has just looked at. */
static bool limits_hold_seat(struct limits_seat *s)
{
    mutex_lock(&s->limits->lock);
    s->nudged = false;
    bool holds = ask(s);
    mutex_unlock(&s->limits->lock);
    return holds;
}

/* Waits until the seat holds its resources, is nudged, or a request in the queue may have timed
 * out. */
static void wait_for_turn(struct limits_seat *s, time_ns until)
{
    mutex_lock(&s->limits->lock);
    while (!s->nudged && rate_limiter_state(s->rate) == RATE_LIMITER_WAITS &&
           mutex_cond_wait_until(&s->turn, &s->limits->lock, until))
        continue;
    mutex_unlock(&s->limits->lock);
}

enum rate_limiter_state limits_state(const struct limits_seat *s)
{
    mutex_lock(&s->limits->lock);
    enum rate_limiter_state state = rate_limiter_state(s->rate);
    mutex_unlock(&s->limits->lock);
    return state;
}

uint64_t limits_scaled(const struct limits_seat *s)
{
    mutex_lock(&s->limits->lock);
    uint64_t scaled = rate_limiter_scaled(s->rate);
    mutex_unlock(&s->limits->lock);
    return scaled;
}

/* Requests left the queue: runners that no longer have anything to wait for look at it again. */
static void limits_settle(struct scheduler *s, time_ns now)
{
    const struct serve_version *v = s->version;
    for (uint32_t i = 0; wrap_of(s)->limited && i < v->instances.runner_count; i++) {
        struct runner *r = v->instances.runners[i];
        time_ns wake;
        if (limits_state(r->limit) == RATE_LIMITER_WAITS && !limits_is_ready(r, now, &wake))
            nudge(r->limit);
    }
}

/* Runs what was taken. The resources are free as soon as Execute has returned, before the
 * answers are delivered. A runner with more work joins the waiting order at that same moment.
 * Caller holds v->lock. */
static void limits_run(struct runner *r, size_t count, time_ns now)
{
    struct serve_version *v = r->version;
    struct limits_seat *s = r->limit;
    struct submit_turn turn = {0};
    bool together = !v->config->decoupled;
    limits_settle(v->scheduler, now);
    runner_wake(v, now);
    mutex_unlock(&v->lock);
    if (together) {
        submit_turn_begin(&turn);
        response_batch_executes(&turn.answers, r->batch, count, now);
    }
    runner_execute(r, count);
    mutex_lock(&v->lock);
    time_ns wake;
    bool more = (!r->leaving || r->seat) && limits_is_ready(r, clock_now_ns(), &wake);
    mutex_lock(&s->limits->lock);
    limits_give_back(s, true, more);
    mutex_unlock(&s->limits->lock);
    mutex_unlock(&v->lock);
    if (together)
        submit_turn_end(&turn);
    mutex_lock(&v->lock);
}

/* One round: get the resources, take one batch, execute it, give the resources back, deliver. */
static bool limited_turn(struct runner *r, time_ns *ret_wake)
{
    struct serve_version *v = r->version;
    struct limits_seat *s = r->limit;
    mutex_assert_held(&v->lock);
    time_ns now = clock_now_ns();
    bool ready = limits_is_ready(r, now, ret_wake);
    if (v->scheduler->ops.has_dropped(v->scheduler)) {
        runner_answer_dropped(v, now);
        return true;
    }
    if (!ready) {
        want_nothing(s);
        return false;
    }
    if (!limits_hold_seat(s)) {
        time_ns until = v->scheduler->ops.next_deadline(v->scheduler);
        if (until <= now) {
            runner_answer_dropped(v, now);
            return true;
        }
        mutex_unlock(&v->lock);
        wait_for_turn(s, until);
        mutex_lock(&v->lock);
        return true;
    }
    size_t count = runner_take(r, now, ret_wake);
    if (count)
        limits_run(r, count, now);
    else
        want_nothing(s);
    return count > 0;
}

static bool limits_turn(struct scheduler *s, struct runner *r, time_ns *ret_wake)
{
    return r->limit ? limited_turn(r, ret_wake) : wrap_of(s)->base.inner.turn(s, r, ret_wake);
}

static struct runner *limits_pick(struct scheduler *s)
{
    const struct serve_version *v = s->version;
    struct runner *first = NULL;
    uint64_t least = 0;
    if (!wrap_of(s)->limited)
        return wrap_of(s)->base.inner.pick(s);
    for (uint32_t i = 0; i < v->instances.runner_count; i++) {
        struct runner *r = v->instances.runners[i];
        if (r->state != RUNNER_IDLE)
            continue;
        uint64_t scaled = limits_scaled(r->limit);
        if (!first || scaled < least) {
            first = r;
            least = scaled;
        }
    }
    return first;
}

static bool limits_remove(struct scheduler *s, struct request *r)
{
    bool waited = wrap_of(s)->base.inner.remove(s, r);
    limits_settle(s, clock_now_ns());
    return waited;
}

static void limits_drop(struct scheduler *s, struct runner *r)
{
    seat_free(r->limit);
    r->limit = NULL;
    if (wrap_of(s)->base.inner.drop)
        wrap_of(s)->base.inner.drop(s, r);
}

static void limits_end(struct scheduler *s)
{
    struct limits_around *w = wrap_of(s);
    void (*inner)(struct scheduler *) = w->base.inner.free;
    mem_free(w);
    inner(s);
}

void limits_wrap(struct limits *l, struct serve_version *v)
{
    if (!l)
        return;
    struct limits_around *w = MEM_NEW(struct limits_around);
    struct scheduler *s = v->scheduler;
    w->limits = l;
    scheduler_put_around(s, SCHEDULER_LIMITS, &w->base);
    s->ops.equip = limits_equip;
    s->ops.commit = limits_commit;
    s->ops.hold = limits_hold;
    s->ops.release = limits_release;
    s->ops.nudge = limits_nudge;
    s->ops.quit = limits_quit;
    s->ops.turn = limits_turn;
    s->ops.pick = limits_pick;
    s->ops.remove = limits_remove;
    s->ops.drop = limits_drop;
    s->ops.free = limits_end;
}

static struct err *open_limits(const struct options *o, void **ret_own)
{
    if (!o->limits.rates)
        return NULL;
    struct rate_limiter_supply supplies[OPTIONS_MAX_RATE_RESOURCES];
    for (size_t i = 0; i < o->limits.resource_count; i++) {
        const struct options_resource *r = &o->limits.resources[i];
        bool every = r->device == OPTIONS_EVERY_DEVICE;
        supplies[i] = (struct rate_limiter_supply){
            .name = r->name,
            .count = r->count,
            .device = every ? RATE_LIMITER_EVERY_DEVICE : r->device,
        };
    }
    *ret_own = limits_new(supplies, o->limits.resource_count);
    return NULL;
}

static void close_limits(void *own)
{
    limits_free(own);
}

static void wrap_in_limits(void *own, struct serve_version *v, const char *seen)
{
    (void)seen;
    limits_wrap(own, v);
}

const struct feature limits_feature = {
    .open = open_limits, .close = close_limits, .wrap = wrap_in_limits};
