/* The shell around the schedulers: versions, their queues, runners and instances, loops and
 * ensembles, all of it as it is, on a virtual clock with threads that take turns as a seed says
 * (shell/steps.h). Clients ask, cancel and wait; models are loaded, resized and unloaded; the
 * backend answers, fails, forgets, answers later, gives back. What has to be true is looked at
 * with every execution and answer, and whenever nobody can go on. NEREID_SIM_SEED=n plays one
 * seed, NEREID_SIM_RUNS=n sets how many are played. */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/thread.h"
#include "shell/backend.h"
#include "shell/steps.h"
#include "shell/world.h"
#include "support/unit.h"

#include <inttypes.h>
#include <stdlib.h>

#define RUNS         6000u
#define MOST_CLIENTS 3u
#define MOST_ERRAND  120u

#define IO                                                     \
    "input [{ name: 'i' data_type: TYPE_INT32 dims: [ 1 ] }] " \
    "output [{ name: 'o' data_type: TYPE_INT32 dims: [ -1 ] }] "

/* What a client has a loop do. */
struct errand {
    struct mail mail;
    struct ask *asks[MOST_ERRAND];
    unsigned count;
    bool cancels;
};

struct client {
    unsigned index;
    struct sim_loop *home; /* NULL: it uses the C API */
    struct thread *thread;
};

static struct client clients[MOST_CLIENTS];
static unsigned client_count;
static bool asks_again; /* clients ask again when they are answered */

/* -- models -- */

static void put_dynamic(struct model *m, struct strbuf *sb)
{
    static const unsigned delays[] = {0, 0, 20, 5000, 12000000};
    unsigned delay = delays[steps_pick(5)];
    m->delay = TIME_US(delay);
    m->ordered = !m->decoupled && steps_one_in(4);
    m->may_expire = steps_one_in(3);
    strbuf_printf(sb, "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: %u ",
                  delay);
    if (steps_one_in(2))
        strbuf_puts(sb, "preferred_batch_size: 3 ");
    if (m->ordered)
        strbuf_puts(sb, "preserve_ordering: true ");
    if (steps_one_in(3))
        strbuf_puts(sb, "priority_levels: 2 default_priority_level: 2 ");
    m->rejects = m->may_expire && steps_one_in(2);
    if (m->may_expire)
        strbuf_printf(sb,
                      "default_queue_policy { timeout_action: %s default_timeout_microseconds: %u "
                      "allow_timeout_override: true max_queue_size: %u } ",
                      m->rejects ? "REJECT" : "DELAY", steps_pick(2) * 30000, steps_pick(4));
    strbuf_puts(sb, "} ");
}

static void put_sequence(struct model *m, struct strbuf *sb)
{
    m->iterative = steps_one_in(2);
    strbuf_printf(sb, "max_batch_size: %u sequence_batching { %s", 1 + steps_pick(4),
                  m->iterative ? "iterative_sequence: true " : "");
    strbuf_puts(sb, "control_input [{ name: 'ready' control [{ kind: CONTROL_SEQUENCE_READY "
                    "int32_false_true: [ 0, 1 ] }] }] max_sequence_idle_microseconds: 1000000 ");
    unsigned delay = steps_pick(2) * 5000;
    m->delay = TIME_US(delay);
    m->may_expire = m->rejects = steps_one_in(4);
    if (m->kind == OLDEST)
        strbuf_printf(sb, "oldest { max_candidate_sequences: %u max_queue_delay_microseconds: %u }",
                      1 + steps_pick(4), delay);
    else
        strbuf_printf(sb,
                      "direct { max_queue_delay_microseconds: %u minimum_slot_utilization: %u }",
                      delay, delay ? 1u : 0u);
    strbuf_puts(sb, " } ");
}

static void put_ensemble(struct model *m, struct strbuf *sb)
{
    unsigned a = steps_pick(model_count - 1);
    unsigned b = steps_pick(model_count - 1);
    m->decoupled = models[a].decoupled || models[b].decoupled;
    strbuf_printf(sb, "max_batch_size: 4 platform: 'ensemble' ensemble_scheduling { ");
    if (steps_one_in(2))
        strbuf_printf(sb, "max_inflight_requests: %u ", 1 + steps_pick(2));
    bool chain = steps_one_in(2);
    strbuf_printf(sb,
                  "step { model_name: '%s' model_version: -1 input_map { key: 'i' value: 'i' } "
                  "output_map { key: 'o' value: '%s' } } ",
                  models[a].name, chain ? "x" : "o");
    if (chain)
        strbuf_printf(sb,
                      "step { model_name: '%s' model_version: -1 input_map { key: 'i' value: 'x' } "
                      "output_map { key: 'o' value: 'o' } } ",
                      models[b].name);
    strbuf_puts(sb, "} ");
}

static void draw_model(void)
{
    struct strbuf sb = STRBUF_INIT;
    struct model *m = &models[model_count++];
    *m = (struct model){.name = {'m', (char)('0' + model_count), 0}};
    m->kind = (enum kind)steps_pick(model_count > 1 ? 5 : 4);
    strbuf_printf(&sb, "name: '%s' backend: 'b' " IO, m->name);
    if (m->kind != ENSEMBLE) {
        m->decoupled = steps_one_in(5);
        m->limited = steps_one_in(6);
        m->inline_ok = steps_one_in(2);
        m->halves = !m->inline_ok && steps_one_in(2);
    }
    if (m->kind == PLAIN && steps_one_in(2))
        strbuf_puts(&sb, "max_batch_size: 4 ");
    if (m->kind == DYNAMIC)
        put_dynamic(m, &sb);
    if (m->kind == DIRECT || m->kind == OLDEST)
        put_sequence(m, &sb);
    if (m->kind == ENSEMBLE)
        put_ensemble(m, &sb);
    else if (steps_one_in(4))
        strbuf_puts(&sb, "model_warmup [{ name: 'w' batch_size: 2 inputs { key: 'i' value { "
                         "data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } }] ");
    if (m->decoupled)
        strbuf_puts(&sb, "model_transaction_policy { decoupled: true } ");
    m->text = mem_strdup(strbuf_str(&sb));
    strbuf_fini(&sb);
    world_load(m, 1 + steps_pick(2));
    world_publish();
}

/* -- clients -- */

static void run_errand(struct mail *mail)
{
    struct errand *e = (struct errand *)mail;
    for (unsigned i = 0; i < e->count; i++)
        (e->cancels ? world_cancel : world_submit)(e->asks[i]);
    mem_free(e);
}

static void draw_sequence(struct ask *a, unsigned of_client)
{
    if (a->model->kind == PLAIN || a->model->kind == DYNAMIC)
        return;
    if (steps_one_in(3)) {
        world_alone(a);
        return;
    }
    /* Of this model alone: an ensemble has the same id in its steps. */
    a->sequence = (uint64_t)(a->model - models) * 1000 + of_client * 10 + 1 + steps_pick(3);
    a->flags = (steps_one_in(3) ? REQUEST_SEQUENCE_START : 0) |
               (steps_one_in(4) ? REQUEST_SEQUENCE_END : 0);
}

static struct ask *draw_ask(struct model *m, struct sim_loop *home, unsigned of_client)
{
    static const uint64_t timeouts[] = {0, 0, 0, 10, 20000};
    struct ask *a = world_ask(m, home);
    if (!a)
        return NULL;
    draw_sequence(a, of_client);
    a->timeout_us = m->may_expire ? timeouts[steps_pick(5)] : 0;
    a->priority = steps_pick(3);
    a->large = steps_one_in(10) && m->kind != ENSEMBLE;
    a->gone = steps_one_in(20);
    return a;
}

static void submit_some(const struct client *c)
{
    struct model *m = &models[steps_pick(model_count)];
    unsigned count = 1 + steps_pick(steps_one_in(40) ? MOST_ERRAND : steps_one_in(8) ? 32 : 4);
    struct errand *e = MEM_NEW(struct errand);
    e->mail.deliver = run_errand;
    for (unsigned i = 0; i < count; i++) {
        struct ask *a = draw_ask(m, c->home, c->index);
        if (!a)
            break;
        e->asks[e->count++] = a;
        if (steps_one_in(20))
            m = &models[steps_pick(model_count)];
    }
    if (c->home)
        loop_post(c->home->loop, &e->mail, &e->mail);
    else
        run_errand(&e->mail);
}

static void cancel_one(const struct client *c)
{
    unsigned last = ask_count < 12 ? ask_count : 12;
    struct ask *a = last ? &asks[ask_count - 1 - steps_pick(last)] : NULL;
    if (!a || a->home != c->home || !a->accepted)
        return;
    struct errand *e = MEM_NEW(struct errand);
    *e = (struct errand){.mail.deliver = run_errand, .asks = {a}, .count = 1, .cancels = true};
    if (c->home)
        loop_post(c->home->loop, &e->mail, &e->mail);
    else
        run_errand(&e->mail);
}

/* A client that hears an answer and asks the next thing on the spot. */
static void ask_again(const struct ask *was)
{
    if (!asks_again || !steps_one_in(5))
        return;
    struct ask *a = draw_ask(&models[steps_pick(model_count)], was->home, 90);
    if (!a)
        return;
    if (a->sequence)
        world_alone(a);
    world_submit(a);
}

static void client_main(void *arg)
{
    static const time_ns pauses[] = {
        0, 0, 0, TIME_US(10), TIME_US(60), TIME_MS(1), TIME_MS(100), TIME_S(12)};
    const struct client *c = arg;
    for (unsigned rounds = 3 + steps_pick(10); rounds; rounds--) {
        steps_sleep(pauses[steps_pick(steps_one_in(10) ? 8 : 7)]);
        if (steps_one_in(4))
            cancel_one(c);
        else
            submit_some(c);
    }
}

/* Changes what is served. */
static void admin_main(void *arg)
{
    (void)arg;
    bool restless = steps_one_in(4);
    for (unsigned rounds = steps_pick(restless ? 30 : 6); rounds; rounds--) {
        steps_sleep(TIME_US(restless ? steps_pick(4) * 10 : 1 + steps_pick(3000)));
        struct model *m = &models[steps_pick(model_count)];
        if (steps_one_in(restless ? 20 : 3)) {
            world_unload(m);
            if (steps_one_in(2))
                world_load(m, 1 + steps_pick(3));
            world_publish();
        } else {
            world_resize(m, 1 + steps_pick(3));
        }
    }
}

/* -- a run -- */

static void loop_main(void *arg)
{
    struct sim_loop *l = arg;
    table_view_open(&l->view, table, l->loop);
    submit_init(&l->submitter, l->loop);
    l->submitter.view = &l->view;
    loop_run(l->loop);
    table_view_close(&l->view);
}

static void start(const char *name, void (*fn)(void *arg), void *arg, struct thread **ret)
{
    struct err *e = thread_start(name, fn, arg, ret);
    CHECK(!e);
}

static void begin(void)
{
    world_begin();
    backend_begin();
    for (unsigned i = 0; i < LOOPS; i++) {
        struct sim_loop *l = &loops[i];
        l->index = i;
        l->after.run = world_loop_after;
        list_init(&l->after.node);
        struct err *e = loop_new(&l->loop);
        CHECK(!e);
        start("loop", loop_main, l, &l->thread);
    }
    for (unsigned count = 1 + steps_pick(5); count; count--)
        draw_model();
}

static void end(void)
{
    for (unsigned i = 0; i < model_count; i++)
        world_unload(&models[(i + 1) % model_count]);
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_stop(loops[i].loop);
        thread_join(loops[i].thread);
        loop_free(loops[i].loop);
    }
    backend_end();
    world_end();
}

static void play(uint64_t seed)
{
    struct thread *admin;
    steps_begin(seed, world_at_rest);
    begin();
    asks_again = steps_one_in(2);
    world_on_end = ask_again;
    client_count = 1 + steps_pick(MOST_CLIENTS);
    for (unsigned i = 0; i < client_count; i++) {
        unsigned home = steps_pick(LOOPS + 1);
        clients[i] = (struct client){.index = i + 1, .home = home < LOOPS ? &loops[home] : NULL};
        start("client", client_main, &clients[i], &clients[i].thread);
    }
    start("admin", admin_main, NULL, &admin);
    for (unsigned i = 0; i < client_count; i++)
        thread_join(clients[i].thread);
    while (world_open())
        steps_sleep(TIME_MS(20));
    asks_again = false;
    thread_join(admin);
    while (world_open())
        steps_sleep(TIME_MS(20));
    end();
    steps_end();
}

static unsigned long from_env(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

static void say_counts(void)
{
    const struct world_counts *c = &world_counts;
    print_message(
        "%lu asked, %lu refused, %lu cancelled; %lu executions, %lu inline, %lu begun by loops, "
        "%lu of these ended elsewhere, %lu of steps, "
        "%lu again, %lu answered later, %lu gaps, %lu warm-ups; %lu unloads, %lu changes; "
        "at most %u steps without any of it, and stacks of %lu bytes\n",
        c->asks, c->refused, c->cancelled, c->executions, c->inline_runs, c->begun, c->finished,
        c->steps, c->again, c->later, c->gaps, c->warm, c->unloads, c->changes, steps_longest(),
        steps_depth());
}

static void random_runs(void **state)
{
    (void)state;
    const struct log_settings quiet = {.fd = LOG_FD_STANDARD};
    log_set(&quiet);
    unsigned long one = from_env("NEREID_SIM_SEED", 0);
    unsigned long runs = one ? 1 : from_env("NEREID_SIM_RUNS", RUNS);
    for (unsigned long i = 0; i < runs; i++)
        play(one ? one : i + 1);
    say_counts();
    const struct world_counts *c = &world_counts;
    if (!one && runs >= RUNS)
        assert_true(c->inline_runs && c->begun && c->finished && c->steps && c->again && c->later &&
                    c->gaps && c->warm && c->cancelled && c->unloads && c->changes);
}

UNIT_MAIN(UNIT(random_runs))
