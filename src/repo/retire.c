#include "repo/retire.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/heap.h"
#include "os/thread.h"
#include "plugin/backend.h"
#include "plugin/model.h"
#include "repo/agents.h"
#include "repo/models.h"
#include "repo/repo_priv.h"
#include "repo/source.h"
#include "serve/version.h"

#include <inttypes.h>

/* How long to wait before looking again at versions that requests still use: first, and at most. */
#define LOOK_FIRST TIME_MS(1)
#define LOOK_MOST  TIME_MS(32)

/* If requests delay a version for this long, a log line says so. */
#define TELL_AFTER TIME_MS(500)
/* The same where none is left, but an execution has not returned. */
#define TELL_BUSY_AFTER TIME_S(5)

static void finish_instances(struct repo *r, struct repo_retired *old)
{
    instances_free(&old->left);
    atomic_fetch_sub_explicit(&old->version->parting, 1, memory_order_relaxed);
    version_unpin(old->version);
    mutex_lock(&r->lock);
    old->model->retiring--;
    old->model->parting--;
    old->model->finalising--;
    mutex_cond_broadcast(&r->changed);
    models_let_go(r, old->model);
    mutex_unlock(&r->lock);
    mem_free(old);
}

static void retire_finish(struct repo *r, struct repo_retired *old)
{
    if (old->only_some) {
        finish_instances(r, old);
        return;
    }
    version_halt(old->version);
    mutex_lock(&r->lock);
    old->finishing = true;
    mutex_unlock(&r->lock);
    version_free(old->version);
    source_unref(old->source);
    struct repo_model *m = old->model;
    LOG_INFO("successfully unloaded '%s' version %" PRId64, m->title, old->number);
    mutex_lock(&r->lock);
    list_remove(&old->all);
    tally_unref(old->tally);
    m->retiring--;
    for (size_t i = 0; old->shown && i < m->version_count; i++) {
        struct repo_version *v = &m->versions[i];
        if (v->number != old->number || --v->unloading || v->state != TABLE_UNLOADING)
            continue;
        v->state = TABLE_UNLOADED; /* the reason stays */
        if (!r->stopping)          /* at the end nobody looks, and there may be thousands */
            models_publish(r);
    }
    models_let_go(r, m);
    mutex_unlock(&r->lock);
    mem_free(old);
}

static const char *backend_name(const struct repo_retired *old)
{
    return old->backend ? old->backend->name : "ensemble";
}

/* Logs once per version which backend does not release its requests, or does not return from an
 * execution though all of them are answered. */
static void retire_tell(struct repo_retired *old)
{
    time_ns now = clock_now_ns();
    if (!old->since)
        old->since = now;
    if (old->told || now - old->since < TELL_AFTER)
        return;
    long count = version_requests(old->version);
    if (count <= 0 && now - old->since < TELL_BUSY_AFTER)
        return;
    old->told = true;
    if (count <= 0) {
        LOG_WARN("unloading '%s' version %" PRId64 " waits for backend '%s', which has not "
                 "returned from an execution",
                 old->model->title, old->number, backend_name(old));
        return;
    }
    LOG_WARN("unloading '%s' version %" PRId64 " waits for %ld request%s, each of them without a "
             "final response, or kept by backend '%s', or by a response or response factory of its",
             old->model->title, old->number, count, count == 1 ? "" : "s", backend_name(old));
}

/* The next one that was not logged yet. Lock held. */
static struct repo_retired *next_left(struct repo *r)
{
    LIST_EACH (node, &r->leaving) {
        struct repo_retired *old = LIST_ITEM(node, struct repo_retired, all);
        if (!old->said)
            return old;
    }
    return NULL;
}

/* Lock held. A version that is not finishing is whole. */
static void say_what_lasts(struct strbuf *line, const struct repo_retired *old)
{
    long count = old->finishing ? 0 : version_requests(old->version);
    const char *busy = old->finishing ? NULL : version_busy(old->version);
    if (old->finishing)
        strbuf_printf(line, "does not end finalising it");
    else if (count > 0)
        strbuf_printf(line, "holds up %ld request%s", count, count == 1 ? "" : "s");
    else if (busy)
        strbuf_printf(line,
                      "still executes in instance '%s', or a callback of the host program has not "
                      "returned",
                      busy);
    else
        strbuf_printf(line, "has not begun to finalise it");
}

void retire_say_left(struct repo *r)
{
    struct repo_retired *old;
    mutex_lock(&r->lock);
    while ((old = next_left(r))) {
        struct strbuf line = STRBUF_INIT;
        strbuf_printf(&line, "'%s' version %" PRId64 " is not unloaded: backend '%s' ",
                      old->model->title, old->number, backend_name(old));
        say_what_lasts(&line, old);
        old->said = true;
        mutex_unlock(&r->lock);
        LOG_ERROR("%s", line.data);
        strbuf_fini(&line);
        mutex_lock(&r->lock);
    }
    mutex_unlock(&r->lock);
}

static bool retire_is_over(struct repo_retired *old)
{
    if (old->only_some)
        return instances_idle(old->version, &old->left);
    bool over = version_drained(old->version);
    if (!over) {
        version_part(old->version);
        retire_tell(old);
    }
    return over;
}

/* Frees one version after the other. When none is left for now, unused memory is given back to
 * the system. */
static void finisher_main(void *arg)
{
    struct thread_seat *seat = arg;
    struct repo *r = seat->owner;
    bool untidy = false;
    struct list *node;
    mutex_lock(&r->lock);
    while ((node = list_pop(&r->drained)) || (untidy && !r->retirer_stop)) {
        struct repo_retired *old = node ? LIST_ITEM(node, struct repo_retired, node) : NULL;
        mutex_unlock(&r->lock);
        if (old)
            retire_finish(r, old);
        else
            heap_give_back();
        untidy = old;
        mutex_lock(&r->lock);
    }
    r->finisher_count--;
    seat->ended = true;
    mutex_cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
}

/* Lets a thread that does nothing else free the version, so that a backend whose finalisation
 * never ends delays nobody else. Lock not held. */
static void finish_aside(struct repo *r, struct repo_retired *old)
{
    mutex_lock(&r->lock);
    old->model->finalising += old->only_some;
    list_append(&r->drained, &old->node);
    struct thread_seat *seat = thread_seat_free(r->finishers, REPO_FINISHERS);
    struct err *e = seat ? thread_seat_start(seat, r, "retirer", finisher_main) : NULL;
    r->finisher_count += seat && !e;
    bool mine = !r->finisher_count; /* no thread could be started */
    if (mine)
        list_remove(&old->node);
    mutex_unlock(&r->lock);
    if (mine)
        retire_finish(r, old);
    err_free(e);
}

/* Frees the versions that no request uses. Returns true if there was any. Lock not held. */
static bool free_drained(struct repo *r, struct list *old)
{
    bool any = false;
    LIST_EACH (node, old) {
        struct repo_retired *one = LIST_ITEM(node, struct repo_retired, node);
        if (!retire_is_over(one))
            continue;
        list_remove(&one->node);
        finish_aside(r, one);
        any = true;
    }
    return any;
}

/* Tells the agents of a load that no version of it serves any more, before any version is freed. */
static void tell_agents(struct list *old)
{
    LIST_EACH (node, old) {
        struct repo_retired *one = LIST_ITEM(node, struct repo_retired, node);
        if (one->last)
            agents_unload(one->source->agents);
        one->last = false;
    }
}

/* Works until nothing is left. If the repository does not stop, the thread then waits for more
 * work for a while. Lock held. */
static void retire_work(struct repo *r, bool linger)
{
    struct list mine;
    list_init(&mine);
    time_ns pause = LOOK_FIRST;
    for (;;) {
        if (!list_empty(&r->retired)) {
            list_splice(&mine, &r->retired);
            models_publish_rest(r); /* or the table may still show them */
            mutex_unlock(&r->lock);
            table_settle(r->table);
            tell_agents(&mine);
            pause = LOOK_FIRST;
        } else if (!list_empty(&mine)) {
            mutex_unlock(&r->lock);
        } else {
            time_ns until = clock_now_ns() + REPO_IDLE_NS;
            while (linger && list_empty(&r->retired) && !r->retirer_stop && clock_now_ns() < until)
                mutex_cond_wait_until(&r->changed, &r->lock, until);
            if (list_empty(&r->retired))
                return;
            continue;
        }
        if (free_drained(r, &mine))
            pause = LOOK_FIRST;
        mutex_lock(&r->lock);
        time_ns until = clock_now_ns() + pause;
        while (!list_empty(&mine) && list_empty(&r->retired) && clock_now_ns() < until)
            mutex_cond_wait_until(&r->changed, &r->lock, until);
        pause = pause * 2 < LOOK_MOST ? pause * 2 : LOOK_MOST;
    }
}

static void retirer_main(void *arg)
{
    struct repo *r = arg;
    mutex_lock(&r->lock);
    retire_work(r, true);
    r->retirer_runs = false;
    mutex_unlock(&r->lock);
}

/* Hands a version to the retirer thread, which is started if needed. Lock held. */
static void retire_hand_over(struct repo *r, struct repo_retired *old)
{
    list_append(&r->retired, &old->node);
    mutex_cond_broadcast(&r->changed);
    if (r->retirer_runs || r->retirer_stop)
        return;
    thread_join(r->retirer); /* the thread has ended, so it takes no lock */
    r->retirer = NULL;
    struct err *e = thread_start("retirer", retirer_main, r, &r->retirer);
    r->retirer_runs = !e;
    if (e)
        LOG_WARN("versions stay in memory until the next is unloaded: %s", err_message(e));
    err_free(e);
}

void retire_version(struct repo *r, struct repo_model *m, struct repo_version *v, bool shown)
{
    struct repo_retired *old = MEM_NEW(struct repo_retired);
    *old = (struct repo_retired){.repo = r,
                                 .model = m,
                                 .number = v->number,
                                 .shown = shown,
                                 .version = v->version,
                                 .source = v->source};
    old->tally = v->version->tally.tally ? tally_ref(v->version->tally.tally) : NULL;
    if (v->version->model)
        old->backend = v->version->model->backend;
    list_append(&r->leaving, &old->all);
    old->last = --v->source->serving == 0;
    model_retire(old->version->model);
    v->version = NULL;
    v->source = NULL;
    m->retiring++;
    if (shown) {
        models_say(v, TABLE_UNLOADING, NULL);
        v->unloading++;
    }
    retire_hand_over(r, old);
}

struct tally *retire_tally(struct repo *r, const struct repo_model *m, int64_t number)
{
    LIST_EACH (node, &r->leaving) {
        const struct repo_retired *old = LIST_ITEM(node, struct repo_retired, all);
        if (old->model == m && old->number == number && old->tally)
            return tally_ref(old->tally);
    }
    return tally_new();
}

void retire_instances(struct repo *r, struct repo_model *m, struct serve_version *v,
                      struct instances *left)
{
    if (!left->runner_count && !left->passive_count) {
        instances_free(left);
        return;
    }
    struct repo_retired *old = MEM_NEW(struct repo_retired);
    *old = (struct repo_retired){
        .repo = r, .model = m, .number = v->number, .version = v, .only_some = true, .left = *left};
    *left = (struct instances){0};
    version_pin(v);
    atomic_fetch_add_explicit(&v->parting, 1, memory_order_relaxed);
    m->retiring++;
    m->parting++;
    retire_hand_over(r, old);
}

void retire_wait_instances(struct repo *r, const struct repo_model *m)
{
    time_ns until = clock_now_ns() + REPO_PARTING_NS;
    mutex_lock(&r->lock);
    while (m->parting && !r->stopping && (m->finalising || clock_now_ns() < until))
        mutex_cond_wait_until(&r->changed, &r->lock, m->finalising ? TIME_NEVER : until);
    mutex_unlock(&r->lock);
}

void retire_stop(struct repo *r)
{
    mutex_lock(&r->lock);
    r->retirer_stop = true;
    mutex_cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
    thread_join(r->retirer);
    r->retirer = NULL;
    mutex_lock(&r->lock);
    retire_work(r, false); /* the versions for which no thread could be started */
    mutex_unlock(&r->lock);
    thread_seat_join(r->finishers, REPO_FINISHERS);
}
