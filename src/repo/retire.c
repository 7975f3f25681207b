#include "repo/retire.h"

#include "base/log.h"
#include "base/mem.h"
#include "os/thread.h"
#include "repo/models.h"
#include "repo/repo_priv.h"
#include "repo/source.h"
#include "serve/version.h"

#include <inttypes.h>
#include <malloc.h>

/* How long to wait before looking again at versions that requests still use. */
#define LOOK_FIRST TIME_MS(1)
#define LOOK_MOST  TIME_MS(32)

static void finish(struct repo *r, struct repo_retired *old)
{
    version_free(old->version);
    source_unref(old->source);
    struct repo_model *m = old->model;
    LOG_INFO("successfully unloaded '%s' version %" PRId64, m->name, old->number);
    mutex_lock(&r->lock);
    m->retiring--;
    for (size_t i = 0; old->shown && i < m->version_count; i++) {
        struct repo_version *v = &m->versions[i];
        if (v->number != old->number || --v->unloading || v->state != TABLE_UNLOADING)
            continue;
        models_say(v, TABLE_UNAVAILABLE, "unloaded");
        models_publish(r);
    }
    models_prune(r);
    mutex_unlock(&r->lock);
    mem_free(old);
}

/* Frees what no request uses any more; returns whether there was any. Lock not held. */
static bool free_drained(struct repo *r, struct list *old)
{
    bool any = false;
    LIST_EACH (node, old) {
        struct repo_retired *one = LIST_ITEM(node, struct repo_retired, node);
        if (!version_drained(one->version))
            continue;
        list_remove(node);
        finish(r, one);
        any = true;
    }
    if (any)
        malloc_trim(0);
    return any;
}

/* Works until nothing is left; then, unless the repository stops, a while longer. Lock held. */
static void work(struct repo *r, bool linger)
{
    struct list mine;
    list_init(&mine);
    time_ns pause = LOOK_FIRST;
    for (;;) {
        if (!list_empty(&r->retired)) {
            list_splice(&mine, &r->retired);
            mutex_unlock(&r->lock);
            table_settle(r->table);
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
    work(r, true);
    r->retirer_runs = false;
    mutex_unlock(&r->lock);
}

void retire_version(struct repo *r, struct repo_model *m, struct repo_version *v, bool shown)
{
    struct repo_retired *old = MEM_NEW(struct repo_retired);
    *old = (struct repo_retired){.model = m,
                                 .number = v->number,
                                 .shown = shown,
                                 .version = v->version,
                                 .source = v->source};
    v->version = NULL;
    v->source = NULL;
    m->retiring++;
    if (shown) {
        models_say(v, TABLE_UNLOADING, NULL);
        v->unloading++;
    }
    list_append(&r->retired, &old->node);
    mutex_cond_broadcast(&r->changed);
    if (r->retirer_runs || r->retirer_stop)
        return;
    thread_join(r->retirer); /* it has ended: takes no lock any more */
    r->retirer = NULL;
    struct err *e = thread_start("retirer", retirer_main, r, &r->retirer);
    r->retirer_runs = !e;
    if (e)
        LOG_WARN("versions stay in memory until the next is unloaded: %s", err_message(e));
    err_free(e);
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
    work(r, false); /* what no thread could be started for */
    mutex_unlock(&r->lock);
}
