#include "shell/world.h"

#include "shell/backend.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/response.h"
#include "model/config.h"
#include "os/thread.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "serve/instances.h"
#include "limits/limits.h"
#include "serve/runner.h"
#include "shell/steps.h"
#include "support/test_version.h"

#include <string.h>

#define SILENCE TIME_S(60) /* nothing in a run takes so long without anything being achieved */
#define IDLE    TIME_S(1)  /* max_sequence_idle_microseconds */
#define SLACK   TIME_MS(3) /* a loop rounds its timers up */

struct world_counts world_counts;
struct model models[MOST_MODELS];
unsigned model_count;
struct sim_loop loops[LOOPS];
struct serve_table *table;
struct limits *limits;
struct ask asks[MOST_ASKS];
unsigned ask_count;
void (*world_on_end)(const struct ask *a);

static struct served served[MOST_SERVED];
static unsigned served_count;
static unsigned accepted;
static size_t budget_before;
static struct budget_account *account;

/* -- versions -- */

struct served *world_served(const struct plugin_model *m)
{
    for (unsigned i = 0; i < served_count; i++)
        if (served[i].plugin == m && m)
            return &served[i];
    steps_fail("an instance is of no model");
}

static struct model_config *config_of(const struct model *m, unsigned instances)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_puts(&text, m->text);
    if (m->kind != ENSEMBLE)
        strbuf_printf(&text, "instance_group [{ count: %u kind: KIND_CPU %s }] ", instances,
                      m->limited ? "rate_limiter { resources [{ name: 'r' global: true count: 1 }] "
                                   "priority: 2 }"
                                 : "");
    struct model_config *config = test_version_config(strbuf_str(&text));
    strbuf_fini(&text);
    return config;
}

static struct served *new_served(struct model *m)
{
    if (served_count == MOST_SERVED)
        return NULL;
    struct served *s = &served[served_count++];
    *s = (struct served){.model = m, .changing = true};
    return s;
}

bool world_load(struct model *m, unsigned instances)
{
    struct served *s = new_served(m);
    if (!s)
        return false;
    struct model_config *config = config_of(m, instances);
    struct plugin_model *plugin = NULL;
    struct serve_version *v = NULL;
    if (m->kind != ENSEMBLE) {
        plugin =
            model_new(&backends[m->halves ? 2 : m->inline_ok], m->name, 1, "/", NULL, false, NULL);
        struct err *e = model_initialize(plugin);
        CHECK(!e);
        model_publish_config(plugin, config);
        s->plugin = plugin;
    }
    struct err *e =
        version_new(m->name, 1, config, plugin, true, loops[0].loop, test_version_features(), &v);
    CHECK(!e);
    limits_wrap(limits, v);
    v->table = table;
    e = version_start(v);
    steps_note(e ? "a version cannot be had" : "a version is loaded", m - models, (long)instances);
    if (e) {
        err_free(e);
        version_free(v);
        s->plugin = NULL;
        return false;
    }
    s->version = v;
    s->changing = false;
    m->now = s;
    return true;
}

/* A loop may be, or the thread of an instance that has brought a step of an ensemble: what it
 * has to do besides waits meanwhile. */
static bool a_model_runs_inline(void)
{
    for (unsigned i = 0; i < served_count; i++)
        if (served[i].model->inline_ok && served[i].executing)
            return true;
    return false;
}

/* What was left over of a set goes once it is idle: where there are no sequences, as soon as it
 * executes nothing. */
static void free_left(const struct served *s, struct instances *left)
{
    unsigned looks = 0;
    bool stateful = s->model->kind == DIRECT || s->model->kind == OLDEST;
    while (!instances_idle(s->version, left)) {
        steps_sleep(TIME_MS(32));
        bool busy = stateful || a_model_runs_inline();
        for (uint32_t i = 0; i < left->runner_count; i++)
            busy = busy || ((struct post *)left->runners[i]->instance->state)->executing;
        looks = busy ? 0 : looks + 1;
        if (looks == 10)
            steps_fail("an instance of %s that has nothing to do does not leave", s->model->name);
    }
    instances_free(left);
}

/* Somebody is woken a moment before he is told to leave. */
static void ask_before_change(struct model *m)
{
    struct ask *a = steps_one_in(2) ? world_ask(m, NULL) : NULL;
    if (!a)
        return;
    if (m->kind == DIRECT || m->kind == OLDEST)
        world_alone(a);
    world_submit(a);
}

void world_resize(struct model *m, unsigned instances)
{
    struct served *s = m->now;
    struct instances_draft *draft;
    struct instances left;
    if (!s || m->kind == ENSEMBLE)
        return;
    steps_note("another number of instances", m - models, (long)instances);
    world_counts.changes++;
    s->changing = true;
    struct model_config *config = config_of(m, instances);
    struct err *e = instances_prepare(s->version, config, &draft);
    config_unref(config);
    if (!e) {
        ask_before_change(m);
        instances_commit(draft, &left);
        free_left(s, &left);
    }
    err_free(e);
    s->changing = false;
    s->last_event = steps_now();
}

static void check_unloaded(const struct served *s)
{
    if (s->executing || s->posts || s->held)
        steps_fail("a version is gone with %u executions, %u instances, %u requests", s->executing,
                   s->posts, s->held);
    for (unsigned i = 0; i < ask_count; i++)
        if (asks[i].served == s && asks[i].accepted && (!asks[i].answered || !asks[i].released))
            steps_fail("a version is gone before request %d is over", asks[i].id);
}

void world_unload(struct model *m)
{
    struct served *s = m->now;
    if (!s)
        return;
    steps_note("unloads", m - models, 0);
    world_counts.unloads++;
    m->now = NULL;
    world_publish();
    table_settle(table);
    while (!version_drained(s->version))
        steps_sleep(TIME_MS(32));
    version_free(s->version);
    s->version = NULL;
    s->plugin = NULL;
    check_unloaded(s);
    steps_note("is unloaded", m - models, 0);
}

void world_publish(void)
{
    struct table_model *all = mem_zalloc(MOST_MODELS * sizeof(*all));
    uint32_t count = 0;
    for (unsigned i = 0; i < model_count; i++) {
        if (!models[i].now)
            continue;
        struct table_entry *entry = mem_zalloc(sizeof(*entry));
        *entry = (struct table_entry){1, TABLE_READY, mem_strdup(""), models[i].now->version};
        all[count++] = (struct table_model){
            .name = mem_strdup(models[i].name), .entries = entry, .entry_count = 1};
    }
    table_publish(table, all, count);
}

/* -- asks -- */

struct ask *world_ask(struct model *m, struct sim_loop *home)
{
    if (ask_count == MOST_ASKS)
        return NULL;
    struct ask *a = &asks[ask_count++];
    *a = (struct ask){.id = (int32_t)ask_count, .model = m, .home = home};
    world_counts.asks++;
    return a;
}

void world_alone(struct ask *a)
{
    a->alone = true;
    a->sequence = 1000000 + (uint64_t)a->id;
    a->flags = REQUEST_SEQUENCE_START | REQUEST_SEQUENCE_END;
}

unsigned world_open(void)
{
    unsigned open = 0;
    for (unsigned i = 0; i < ask_count; i++)
        open += asks[i].accepted && (!asks[i].answered || !asks[i].released);
    return open;
}

/* Errors that have a reason. */
static bool may_fail(const struct ask *a)
{
    const struct model *m = a->model;
    bool of_others =
        a->sequence && !a->alone; /* another one ended its sequence, or never began it */
    return a->failing || a->cancelled || m->may_expire || m->kind == ENSEMBLE || of_others ||
           steps_starts_failed();
}

/* Answers of a model that keeps their order: on each loop in the order in which the requests
 * came. */
static void check_order(const struct ask *a)
{
    if (!a->model->ordered || !a->home)
        return;
    for (unsigned i = 0; i < ask_count; i++)
        if (asks[i].served == a->served && asks[i].home == a->home && asks[i].accepted &&
            !asks[i].answered && asks[i].ordinal < a->ordinal)
            steps_fail("request %d is answered before %d", a->id, asks[i].id);
}

void world_on_answer(struct response *r, void *owner)
{
    struct ask *a = owner;
    bool final = r->flags & RESPONSE_FINAL;
    steps_note(final ? "final answer" : "answer", a->id, r->error ? 1 : 0);
    if (a->home && loop_current() != a->home->loop)
        steps_fail("request %d is answered on another thread than its loop's", a->id);
    if (a->answered)
        steps_fail("request %d is answered again after its final answer", a->id);
    if (r->error && !may_fail(a))
        steps_fail("request %d is refused without a reason: %s", a->id, err_message(r->error));
    world_counts.refused += r->error != NULL;
    a->responses++;
    if (final) {
        check_order(a);
        a->answered = true;
        a->served->last_event = steps_now();
        steps_progress();
    }
    response_free(r);
    if (final && world_on_end)
        world_on_end(a);
}

static void released(struct request *r, void *owner)
{
    struct ask *a = owner;
    (void)r;
    if (a->released)
        steps_fail("request %d is released twice", a->id);
    if (a->at)
        steps_fail("request %d is released while it is executed", a->id);
    a->released = true;
    a->request = NULL;
}

static struct serve_version *find(const struct ask *a)
{
    struct serve_version *v = NULL;
    struct table_view own;
    struct table_view *view = a->home ? &a->home->view : &own;
    if (!a->home)
        table_view_open(&own, table, NULL);
    err_free(table_find(view, a->model->name, strlen(a->model->name), -1, &v));
    if (!a->home)
        table_view_close(&own);
    return v;
}

static struct request *make(struct ask *a, struct serve_version *v)
{
    const struct tensor_piece piece = {.data = &a->id, .size = sizeof(a->id)};
    struct request *r = request_new(&v->target, a->home ? a->home->loop : NULL, world_on_answer, a);
    request_account(r, account);
    request_add_input(r, "i", 1, DATATYPE_INT32, (int64_t[]){1, 1},
                      v->config->max_batch_size ? 2 : 1, &piece, 1);
    r->correlation_id = a->sequence;
    r->flags = a->flags;
    r->timeout_us = a->timeout_us;
    r->priority = a->priority;
    r->released = released;
    struct err *e = request_prepare(r);
    CHECK(!e);
    r->times.start = clock_now_ns();
    return r;
}

static struct served *served_of(const struct serve_version *v)
{
    struct served *s = served;
    while (s->version != v)
        s++;
    return s;
}

static void hand_over(struct ask *a)
{
    a->handed = true;
    a->handed_at = steps_now();
}

static unsigned starts_of(const struct ask *a)
{
    unsigned starts = a->flags & REQUEST_SEQUENCE_START;
    for (unsigned i = 0; i < ask_count && a->sequence; i++)
        starts += asks[i].accepted && asks[i].served == a->served &&
                  asks[i].sequence == a->sequence && (asks[i].flags & REQUEST_SEQUENCE_START);
    return starts;
}

void world_submit(struct ask *a)
{
    struct serve_version *v = find(a);
    if (!v)
        return;
    struct request *r = make(a, v);
    a->served = served_of(v);
    a->request = r;
    a->starts = starts_of(a);
    a->accepted = true;
    a->ordinal = accepted++;
    steps_note("is submitted", a->id, a->model - models);
    steps_progress();
    if (a->gone)
        world_cancel(a);
    if (a->home) {
        submit_later(&a->home->submitter, r);
        loop_later(a->home->loop, LOOP_PHASE_FLUSH, &a->home->after);
        return;
    }
    struct response_batch answers; /* as the C API does */
    response_batch_begin(&answers);
    submit_now(r);
    response_batch_end(&answers);
    hand_over(a);
}

void world_loop_after(struct loop_task *t)
{
    const struct sim_loop *l = LIST_ITEM(t, struct sim_loop, after);
    for (unsigned i = 0; i < ask_count; i++)
        if (asks[i].accepted && asks[i].home == l && !asks[i].handed)
            hand_over(&asks[i]);
}

void world_cancel(struct ask *a)
{
    struct response_batch answers;
    if (!a->request)
        return;
    struct request *r = request_ref(a->request);
    a->cancelled = true;
    world_counts.cancelled++;
    steps_note("is cancelled", a->id, 0);
    if (!a->home)
        response_batch_begin(&answers);
    request_cancel(r);
    if (!a->home)
        response_batch_end(&answers);
    request_unref(r);
}

/* -- nobody can go on now -- */

/* An answer that is there is on its way before time passes. Where no thread can be started, a loop
 * runs another batch itself. */
static void look_at_answer(const struct ask *a)
{
    bool returned = !a->sender || a->sender->over >= a->sender_run;
    if (!a->sent || !returned || a->model->ordered || a_model_runs_inline() ||
        steps_starts_failed())
        return;
    steps_fail("the answer to request %d is withheld", a->id);
}

static bool another_limited_one_runs(void)
{
    for (unsigned i = 0; i < served_count; i++)
        if (served[i].model->limited && (served[i].executing || served[i].changing))
            return true;
    return false;
}

/* Until when a request may wait though an instance is idle. */
static time_ns patience(const struct ask *a)
{
    const struct served *s = a->served;
    const struct model *m = a->model;
    bool stateful = m->kind == DIRECT || m->kind == OLDEST;
    if (m->kind == ENSEMBLE || s->changing || steps_starts_failed() || a_model_runs_inline())
        return TIME_NEVER;
    if (m->limited && another_limited_one_runs())
        return TIME_NEVER;
    if (m->ordered && (m->may_expire || a->cancelled || a->executions))
        return TIME_NEVER; /* it was refused perhaps, and the answer waits for those before it */
    if (!stateful)
        return s->executing < s->posts ? a->handed_at + m->delay : TIME_NEVER;
    if (s->executing || s->held)
        return TIME_NEVER;
    return (s->last_event > a->handed_at ? s->last_event : a->handed_at) + m->delay + IDLE + SLACK;
}

static void look_at_waiting(const struct ask *a)
{
    if (!a->at && !a->sent && !(a->executions && a->served->held) && steps_now() > patience(a))
        steps_fail("request %d waits beside an idle instance of %s", a->id, a->model->text);
}

/* What was given up is answered: it is over its time-out, or its sequence ended without it. */
static void look_at_given_up(const struct ask *a)
{
    const struct request *r = a->request;
    if (!r || a->executions || a->sent || a->cancelled || a->model->ordered ||
        a->model->kind == ENSEMBLE || a_model_runs_inline())
        return;
    if (atomic_load(&r->cancelled))
        steps_fail("request %d waits though its sequence is over", a->id);
    if (a->model->rejects && r->queue_level && r->queue_deadline < steps_now() - SLACK)
        steps_fail("request %d waits beyond its time-out", a->id);
}

static bool answers_keep_an_order(void)
{
    bool any = false;
    for (unsigned i = 0; i < model_count; i++)
        any = any || models[i].ordered;
    return any;
}

/* Of an ensemble's request that was given up no step waits: in no queue, nor for a place. */
static void look_at_steps(const struct ask *a)
{
    if (a->cancelled && a->model->kind == ENSEMBLE && !a->inside && !answers_keep_an_order() &&
        !a_model_runs_inline())
        steps_fail("a step of request %d waits though its client is gone", a->id);
}

void world_at_rest(void)
{
    const struct ask *open = NULL;
    for (unsigned i = 0; i < ask_count; i++) {
        const struct ask *a = &asks[i];
        if (!a->accepted || !a->handed || a->answered)
            continue;
        open = open ? open : a;
        look_at_answer(a);
        look_at_waiting(a);
        look_at_given_up(a);
        look_at_steps(a);
    }
    if (steps_now() < steps_last_progress() + SILENCE)
        return;
    for (unsigned i = 0; i < served_count; i++)
        if (served[i].version)
            steps_note("pins of a version", (long)i, version_pins(served[i].version));
    if (open)
        steps_fail("request %d was never answered", open->id);
    steps_fail("nothing is achieved any more: something that is over is still held");
}

/* -- a run -- */

void world_begin(void)
{
    memset(models, 0, sizeof(models));
    memset(loops, 0, sizeof(loops));
    model_count = 0;
    ask_count = 0;
    served_count = 0;
    accepted = 0;
    budget_before = budget_in_use();
    account = budget_account_new();
    limits = limits_new(NULL, 0);
    table = table_new();
}

void world_end(void)
{
    table_free(table);
    limits_free(limits);
    budget_account_close(account);
    if (budget_in_use() != budget_before)
        steps_fail("the budget holds %zu bytes for nobody", budget_in_use() - budget_before);
    for (unsigned i = 0; i < model_count; i++)
        mem_free(models[i].text);
}
