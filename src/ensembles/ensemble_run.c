#include "ensembles/ensemble_run.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "infer/trace.h"
#include "model/config.h"
#include "model/shape.h"
#include "os/mailbox.h"
#include "os/mutex.h"
#include "proto/model_config.pb-c.h"
#include "ensembles/ensemble_flow.h"
#include "ensembles/ensemble_credit.h"
#include "ensembles/ensemble_value.h"
#include "serve/submit.h"
#include "serve/table.h"
#include "serve/version.h"

#include <string.h>

struct ensemble_run_plan {
    struct scheduler base;
    struct ensemble *ensemble;
    struct ensemble_credit *credits; /* per step; NULL = no limit */
};

/* One request of the ensemble; the struct lies in the request's arena. A thread that brings a
 * response while nobody works on the run handles it, and then those that came meanwhile, one after
 * the other. Only that thread uses the run, except for came, lock, steps, failed and open. */
struct run {
    const struct ensemble_run_plan *plan;
    struct request *request;
    struct request_spent spent;
    struct ensemble_flow flow;
    const bool *wanted; /* per output; NULL = all */
    /* a copy of flow.failed for threads that do not work on the run. Only a hint, so it needs no
     * memory ordering */
    atomic_bool failed;
    struct serve_version **versions; /* per step; each is pinned */
    bool gathers;                    /* steps may run on the thread that submits them */
    bool answered;
    time_ns begun;
    struct err *error; /* why it failed */
    /* steps not released yet, plus 1 until the last answer was sent. The thread that counts to 0
     * frees the run and acquires what the others did */
    atomic_uint open;

    /* The response that came last while a thread works on the run, linked to those before it, or
     * `none`; NULL = no thread works on it. Acquire and release: the next thread sees what the one
     * before it did. */
    _Atomic(struct mail *) came;
    struct mail *waiting; /* responses that this thread took from there, oldest first */

    struct mutex lock; /* rank LEAF */
    /* steps that are not released, linked by step_request.node; a step leaves it when it is
     * cancelled. Guarded by the lock */
    struct list steps;
};

static struct mail none;

/* The data of a step's request; it lies in the arena of that request. */
struct step_request {
    struct run *run;
    struct list node; /* in run->steps */
    struct ensemble_claim claim;
    struct ensemble_frame *frame;
    uint32_t step;
    struct ensemble_sequence sequence;
    const struct ensemble_port *lacks; /* an input whose maker left it out; NULL = none does */
    struct ensemble_value **held;      /* the values that its inputs refer to */
    uint32_t held_count;
};

static struct ensemble_run_plan *plan_new(const struct model_config *config)
{
    struct ensemble_run_plan *p = MEM_NEW(struct ensemble_run_plan);
    p->ensemble = ensemble_new(config->proto);
    if (!p->ensemble->max_inflight)
        return p;
    p->credits = mem_alloc(p->ensemble->step_count * sizeof(*p->credits));
    for (uint32_t i = 0; i < p->ensemble->step_count; i++)
        ensemble_credit_init(&p->credits[i]);
    return p;
}

static void ensemble_run_free(struct scheduler *s)
{
    struct ensemble_run_plan *p = (struct ensemble_run_plan *)s;
    for (uint32_t i = 0; p->credits && i < p->ensemble->step_count; i++)
        ensemble_credit_fini(&p->credits[i]);
    mem_free(p->credits);
    ensemble_free(p->ensemble);
    mem_free(p);
}

/* Stops the run: no more steps start. Takes the error over; the first error is kept. */
static void ensemble_run_fail(struct run *run, struct err *e)
{
    if (run->error)
        err_free(e);
    else
        run->error = e;
    run->flow.failed = true;
    atomic_store_explicit(&run->failed, true, memory_order_relaxed);
}

static void ensemble_run_report(struct run *run)
{
    struct request *r = run->request;
    struct stats *stats = version_of(r)->stats;
    time_ns now = clock_now_ns();
    if (run->error) {
        enum stats_reason reason =
            err_code(run->error) == STATUS_CANCELLED ? STATS_CANCELED : STATS_OTHER;
        stats_failure(stats, reason, r->times.start, now);
        return;
    }
    struct stats_compute c = {.start = run->begun};
    c.input_end = c.start + atomic_load_explicit(&run->spent.input_ns, memory_order_relaxed);
    c.output_start = c.input_end + atomic_load_explicit(&run->spent.infer_ns, memory_order_relaxed);
    c.end = c.output_start + atomic_load_explicit(&run->spent.output_ns, memory_order_relaxed);
    stats_success(stats, r->times.start, r->times.queue_start, &c, now, r->batch_size);
    stats_batch(stats, r->batch_size, &c, clock_wall_at(now));
    if (r->parent)
        request_spend(r, &c);
}

/* Counts `open` down; the last caller ends the run. */
static void ensemble_run_leave(struct run *run)
{
    if (atomic_fetch_sub_explicit(&run->open, 1, memory_order_acq_rel) != 1)
        return;
    ensemble_run_report(run);
    for (uint32_t i = 0; i < run->plan->ensemble->step_count; i++)
        if (run->versions[i])
            version_unpin(run->versions[i]);
    ensemble_flow_fini(&run->flow);
    err_free(run->error);
    request_release(run->request);
}

/* Adds the ensemble's name to the error. Called only for the error that is sent. */
static struct err *ensemble_run_named(const struct run *run)
{
    struct err *e = err_new(err_code(run->error), "in ensemble '%s', %s",
                            run->request->config->name, err_message(run->error));
    return err_retry_after(e, err_retry_secs(run->error));
}

/* No step is in flight: sends the client what is still missing. */
static void ensemble_run_finish(struct run *run)
{
    struct request *r = run->request;
    if (!run->error && !run->answered && !r->config->decoupled)
        ensemble_run_fail(
            run, request_error(r, "unexpected deadlock, at least one output is not set while no "
                                  "more ensemble steps can be made"));
    if (run->error)
        response_send(response_new(r), RESPONSE_FINAL, ensemble_run_named(run));
    else
        response_send_flags(r, RESPONSE_FINAL);
}

static void step_responded(struct response *response, void *owner);
static void step_released(struct request *r, void *owner);

/* Takes the sequence from an input's source. The first input that names a sequence decides. Its id
 * is copied: the source may go before the step's response, which belongs to the sequence too. */
static void take_sequence(struct request *r, struct step_request *c, const struct ensemble_value *v,
                          bool *known)
{
    if (!v->source)
        return;
    const struct ensemble_sequence *s = &v->source->sequence;
    bool same = s->correlation_id == c->sequence.correlation_id && s->flags == c->sequence.flags;
    if (*known && !same)
        LOG_ERROR("model '%s': inputs of one step come from different sequences; that of the first "
                  "is used",
                  r->config->name);
    if (!*known) {
        c->sequence = *s;
        if (s->correlation_string)
            c->sequence.correlation_string =
                arena_strndup(&r->arena, s->correlation_string, strlen(s->correlation_string));
    }
    *known = true;
}

static void ensemble_run_add_inputs(struct run *run, struct step_request *c, struct request *r)
{
    const struct ensemble_step *step = &run->plan->ensemble->steps[c->step];
    c->held = arena_alloc(&r->arena, step->input_count * sizeof(struct ensemble_value *));
    bool sequence_known = false;
    for (uint32_t i = 0; i < step->input_count; i++) {
        const struct ensemble_port *port = &step->inputs[i];
        struct ensemble_value *v = c->frame->values[port->tensor];
        size_t len = strlen(port->name);
        int32_t index = config_input(r->config, port->name, len);
        const struct model_io *io = index >= 0 ? &r->config->inputs[index] : NULL;
        if (!v) {
            if (io && !io->optional)
                c->lacks = port;
            continue;
        }
        int64_t *shape = arena_alloc(&r->arena, (v->rank + 1) * sizeof(*shape));
        uint32_t rank = ensemble_value_shape(v, io ? io->dims : NULL, io ? io->rank : 0,
                                             r->config->max_batch_size > 0, shape);
        struct tensor_input *in = request_add_input(r, port->name, len, v->datatype, shape, rank,
                                                    v->pieces, v->piece_count);
        if (!in)
            continue; /* the request has too many inputs; the missing one is reported below */
        for (const struct tensor_policy *p = v->policies; p; p = p->next)
            request_add_policy(in, p->name, p->pieces, p->piece_count);
        ensemble_value_ref(v);
        c->held[c->held_count++] = v;
        take_sequence(r, c, v, &sequence_known);
    }
}

/* Makes the request of a step. Its inputs refer to the tensors where they lie. */
static struct request *make_step(struct run *run, struct ensemble_frame *frame, uint32_t step,
                                 time_ns now)
{
    struct serve_version *v = run->versions[step];
    struct request *from = run->request;
    version_pin(v);
    struct request *r = request_new(&v->target, NULL, step_responded, NULL);
    request_account(r, from->arena.account);
    struct step_request *c = arena_alloc(&r->arena, sizeof(*c));
    *c = (struct step_request){
        .run = run,
        .claim.request = r,
        .frame = frame,
        .step = step,
        .sequence = {from->correlation_id, from->correlation_string, from->flags}};
    list_init(&c->node);
    r->owner = c;
    r->released = step_released;
    r->parent = request_ref(from);
    r->id = from->id;
    r->priority = from->priority;
    r->timeout_us = from->timeout_us;
    r->params = from->params;
    r->memory_shared = from->memory_shared;
    r->times.start = now;
    r->outputs = run->plan->ensemble->steps[step].output_names;
    r->output_count = run->plan->ensemble->steps[step].output_count;
    ensemble_run_add_inputs(run, c, r);
    r->correlation_id = c->sequence.correlation_id;
    r->correlation_string = c->sequence.correlation_string;
    r->flags = c->sequence.flags;
    return r;
}

static void ensemble_run_submit(const struct run *run, struct request *r)
{
    if (run->gathers)
        submit_step(r);
    else
        submit_now(r);
}

/* Submits the request of a step, or parks it. Whoever cancels the run finds it in run->steps from
 * here on; if he looked before, its queue sees that it was cancelled. */
static void place_step(struct run *run, struct request *r)
{
    struct step_request *c = r->owner;
    struct ensemble_credit *credits = run->plan->credits;
    mutex_lock(&run->lock);
    list_append(&run->steps, &c->node);
    mutex_unlock(&run->lock);
    if (!credits ||
        ensemble_credit_take(&credits[c->step], run->plan->ensemble->max_inflight, &c->claim))
        ensemble_run_submit(run, r);
}

/* The error of request_prepare, with the model that left out what the step needs. */
static struct err *explain(const struct run *run, const struct step_request *c, struct err *e)
{
    const struct ensemble *en = run->plan->ensemble;
    uint32_t maker = c->lacks ? en->tensors[c->lacks->tensor].maker : ENSEMBLE_NONE;
    if (maker == ENSEMBLE_NONE)
        return e;
    const struct ensemble_step *from = &en->steps[maker];
    uint32_t i = 0;
    while (from->outputs[i].tensor != c->lacks->tensor)
        i++;
    return err_wrap(e, "model '%s' left out output '%s', which input '%s' of model '%s' needs",
                    from->model, from->outputs[i].name, c->lacks->name, en->steps[c->step].model);
}

/* Starts the steps that are ready in a frame. now: 0 = not known */
static void start_steps(struct run *run, struct ensemble_frame *frame, time_ns now)
{
    uint32_t step;
    while (ensemble_flow_take(&run->flow, frame, &step)) {
        now = now ? now : response_batch_now();
        struct request *r = make_step(run, frame, step, now);
        ensemble_flow_started(&run->flow, frame, step);
        atomic_fetch_add_explicit(&run->open, 1, memory_order_relaxed);
        struct err *e = request_prepare(r);
        if (e) {
            ensemble_run_fail(run, explain(run, r->owner, e));
            ensemble_flow_ended(&run->flow, frame);
            request_release(r);
            return;
        }
        if (run->request->trace)
            trace_request(r, trace_spawn(run->request->trace), run->versions[step]->name,
                          run->versions[step]->number);
        place_step(run, r);
    }
}

/* Requests that got a credit while this thread submits others; NULL = it does not. */
static _Thread_local struct list *placed;

/* Submits a request that waited for its credit. If its run has failed meanwhile, the request is
 * ended without reaching its model. */
static void submit_if_wanted(const struct run *run, struct request *r)
{
    if (atomic_load_explicit(&run->failed, memory_order_relaxed))
        response_fail(r, err_new(STATUS_CANCELLED, "the request has failed at another step"));
    else
        ensemble_run_submit(run, r);
}

/* Submits requests that got a credit. A request that is refused at once passes its credit on;
 * the next request is appended to the list, so this loop does not become a deep recursion.
 * Clients are answered after all are submitted, because a client may wait for another answer.
 * Ensembles around these are not: what they give back is appended too. */
static void submit_placed(struct list *those)
{
    struct response_batch ends;
    struct list *node;
    response_batch_begin(&ends);
    ends.clients = true;
    placed = those;
    while ((node = list_pop(those))) {
        struct request *r = LIST_ITEM(node, struct request, queue_node);
        struct response_batch refused;
        response_batch_begin(&refused);
        refused.all = true;
        submit_if_wanted(((struct step_request *)r->owner)->run, r);
        response_batch_end(&refused);
    }
    placed = NULL;
    response_batch_end(&ends);
}

/* Gives the step's credit to the next parked request, of any run. */
static void give_credit(const struct run *run, uint32_t step)
{
    struct request *next = ensemble_credit_give(&run->plan->credits[step]);
    if (!next)
        return;
    if (placed) {
        list_append(placed, &next->queue_node);
        return;
    }
    struct list those;
    list_init(&those);
    list_append(&those, &next->queue_node);
    submit_placed(&those);
}

/* Answers if all wanted outputs are there. Returns true if that was the last answer. */
static bool ensemble_run_answer(struct run *run, struct ensemble_frame *frame)
{
    if (!ensemble_flow_complete(&run->flow, frame))
        return false;
    struct response *r;
    struct err *e =
        ensemble_value_answer(run->plan->ensemble, run->wanted, run->request, frame->values, &r);
    if (e) {
        ensemble_run_fail(run, e);
        return false;
    }
    run->answered = true;
    bool last = ensemble_flow_over(&run->flow);
    response_send(r, last ? RESPONSE_FINAL : 0, NULL);
    return last;
}

/* Puts the outputs of a response into the frame; outputs that it lacks count as left out. Takes
 * the response over. */
static void ensemble_run_put_outputs(struct run *run, const struct step_request *c,
                                     struct ensemble_frame *frame, struct response *response)
{
    const struct ensemble_step *step = &run->plan->ensemble->steps[c->step];
    struct ensemble_source *source;
    struct err *e = ensemble_value_source(response, &c->sequence, &source);
    if (e) {
        ensemble_run_fail(run, e);
        response_free(response);
        return;
    }
    for (uint32_t i = 0; i < step->output_count; i++) {
        const struct tensor_output *o = response->outputs;
        while (o && strcmp(o->name, step->outputs[i].name) != 0)
            o = o->next;
        ensemble_flow_put(&run->flow, frame, step->outputs[i].tensor,
                          o ? ensemble_value_output(source, o) : NULL);
    }
    ensemble_value_unref_source(source);
}

/* Handles one response of a step. Returns true if the client has now had its last answer. */
static bool proceed(struct run *run, struct response *response)
{
    struct step_request *c = response->request->owner;
    bool final = response->flags & RESPONSE_FINAL;
    uint32_t step = c->step;
    bool counted = c->claim.counted;
    struct ensemble_frame *from = c->frame;
    struct ensemble_frame *frame = ensemble_flow_answered(
        &run->flow, from, run->versions[step]->config->decoupled && !response->empty);
    if (response->request->with_backend)
        request_with_backend(run->request);
    if (response->error) {
        ensemble_run_fail(run, response->error);
        response->error = NULL;
    }
    if (response->empty || run->error)
        response_free(response);
    else
        ensemble_run_put_outputs(run, c, frame, response);
    if (final) {
        ensemble_flow_ended(&run->flow, from);
        if (counted)
            give_credit(run, step);
    }
    start_steps(run, frame, 0);
    bool last = ensemble_run_answer(run, frame);
    ensemble_flow_leave(&run->flow, frame);
    if (last || !ensemble_flow_over(&run->flow))
        return last;
    ensemble_run_finish(run);
    return true;
}

/* Takes the responses that came, oldest first. NULL: none did, and this thread works on the run no
 * longer. */
static struct mail *take_those_that_came(struct run *run)
{
    struct mail *last = &none;
    if (atomic_compare_exchange_strong_explicit(&run->came, &last, NULL, memory_order_acq_rel,
                                                memory_order_relaxed))
        return NULL;
    return mailbox_reverse(atomic_exchange_explicit(&run->came, &none, memory_order_acq_rel));
}

/* The next response that waits. NULL: none does, and this thread works on the run no longer. */
static struct response *next_response(struct run *run)
{
    struct mail *m = run->waiting ? run->waiting : take_those_that_came(run);
    if (m)
        run->waiting = m->next;
    return (struct response *)m;
}

/* Handles responses until none waits. `over`: the client has already had its last answer. */
static void ensemble_run_work(struct run *run, bool over)
{
    struct response *response;
    while (!over && (response = next_response(run)))
        over = proceed(run, response);
    if (over)
        ensemble_run_leave(run);
}

static void step_responded(struct response *response, void *owner)
{
    struct run *run = ((struct step_request *)owner)->run;
    struct mail *before = atomic_load_explicit(&run->came, memory_order_relaxed);
    do
        response->mail.next = before == &none ? NULL : before;
    while (!atomic_compare_exchange_weak_explicit(&run->came, &before,
                                                  before ? &response->mail : &none,
                                                  memory_order_acq_rel, memory_order_relaxed));
    if (!before)
        ensemble_run_work(run, proceed(run, response));
}

static void step_released(struct request *r, void *owner)
{
    (void)r;
    struct step_request *c = owner;
    mutex_lock(&c->run->lock);
    list_remove(&c->node);
    mutex_unlock(&c->run->lock);
    for (uint32_t i = 0; i < c->held_count; i++)
        ensemble_value_unref(c->held[i]);
    ensemble_run_leave(c->run);
}

/* Pins the versions of all steps, so that they live as long as the request, even if they are
 * unloaded meanwhile. */
static struct err *ensemble_run_find_versions(struct run *run, struct table_view *view)
{
    const struct ensemble *en = run->plan->ensemble;
    struct err *e = NULL;
    for (uint32_t i = 0; !e && i < en->step_count; i++)
        e = table_find_in(view, en->steps[i].space, en->steps[i].model, en->steps[i].version,
                          &run->versions[i]);
    return e;
}

static struct err *find_steps(struct run *run)
{
    unsigned depth = 0;
    for (const struct request *p = run->request->parent; p; p = p->parent)
        depth++;
    if (depth > ENSEMBLE_RUN_MAX_DEPTH)
        return err_new(STATUS_INVALID_ARG, "more than %u ensembles within each other",
                       ENSEMBLE_RUN_MAX_DEPTH);
    struct table_view *view = submit_view();
    struct serve_table *table = run->plan->base.version->table;
    if (view && view->table == table)
        return ensemble_run_find_versions(run, view);
    struct table_view own;
    table_view_open(&own, table, NULL);
    struct err *e = ensemble_run_find_versions(run, &own);
    table_view_close(&own);
    return e;
}

/* The wanted outputs; NULL = all. */
static const bool *wanted_outputs(struct request *r)
{
    const struct model_config *config = r->config;
    if (r->output_count == config->output_count)
        return NULL;
    bool *wanted = arena_zalloc(&r->arena, config->output_count * sizeof(*wanted));
    for (uint32_t i = 0; i < r->output_count; i++)
        wanted[config_output(config, r->outputs[i], strlen(r->outputs[i]))] = true;
    return wanted;
}

/* True if steps may be gathered. Not in an ensemble with several responses: the steps that
 * follow from the first response must be queued before those of the second, whichever threads
 * deliver them. */
static bool may_gather(const struct request *r)
{
    if (r->config->decoupled || request_is_of_many(r))
        return false;
    while (r->parent)
        r = r->parent;
    return r->home != NULL;
}

static void ensemble_run_put_inputs(struct run *run)
{
    const struct ensemble *en = run->plan->ensemble;
    struct request *r = run->request;
    for (uint32_t i = 0; i < r->input_count; i++) {
        int32_t index = config_input(r->config, r->inputs[i].name, strlen(r->inputs[i].name));
        ensemble_flow_put(&run->flow, run->flow.first, en->inputs[index],
                          ensemble_value_input(r, &r->inputs[i]));
    }
    for (uint32_t i = 0; r->input_count < en->input_count && i < en->input_count; i++)
        ensemble_flow_put(&run->flow, run->flow.first, en->inputs[i], NULL);
}

static void fini_lock(void *lock)
{
    mutex_fini(lock);
}

/* From now on the run is cancelled with its request. */
static void ensemble_run_show(struct run *run)
{
    struct request *r = run->request;
    struct serve_version *v = version_of(r);
    mutex_init(&run->lock, MUTEX_RANK_LEAF);
    list_init(&run->steps);
    arena_on_end(&r->arena, fini_lock, &run->lock); /* a canceller may need it until then */
    mutex_lock(&v->lock);
    r->slots[REQUEST_SLOT_ENSEMBLE] = run;
    mutex_unlock(&v->lock);
}

/* The next step that was not cancelled, with a reference; NULL = there is none. */
static struct request *next_step(struct run *run)
{
    mutex_lock(&run->lock);
    struct list *node = list_pop(&run->steps);
    struct step_request *c = node ? LIST_ITEM(node, struct step_request, node) : NULL;
    struct request *r = c ? request_ref(c->claim.request) : NULL;
    mutex_unlock(&run->lock);
    return r;
}

/* Cancels the steps that are not released. A parked one is submitted: its model refuses it, as it
 * refuses steps that are made later. */
static void cancel_steps(struct run *run)
{
    struct ensemble_credit *credits = run->plan->credits;
    struct request *r;
    while ((r = next_step(run))) {
        struct step_request *c = r->owner;
        if (credits && ensemble_credit_remove(&credits[c->step], &c->claim))
            submit_now(r);
        else
            r->target->cancelled(r);
        request_unref(r);
    }
}

/* The function behind request_target.cancelled. Answers of steps are delivered here, so that the
 * caller gets the ensemble's; those for loops are posted, this thread's own among them. */
static void ensemble_run_cancel(struct request *r)
{
    struct serve_version *v = version_of(r);
    struct response_batch answers;
    struct response_batch of_steps;
    version_pin(v);
    mutex_lock(&v->lock);
    struct run *run = r->slots[REQUEST_SLOT_ENSEMBLE];
    mutex_unlock(&v->lock);
    response_batch_begin(&answers);
    answers.posts = true;
    response_batch_begin(&of_steps);
    if (run)
        cancel_steps(run);
    response_batch_end(&of_steps);
    response_batch_end(&answers);
    version_unpin(v);
}

static void ensemble_run_start(const struct ensemble_run_plan *plan, struct request *r)
{
    struct run *run = arena_zalloc(&r->arena, sizeof(*run));
    run->plan = plan;
    run->request = r;
    run->wanted = wanted_outputs(r);
    run->gathers = may_gather(r);
    run->begun = clock_now_ns();
    run->versions =
        arena_zalloc(&r->arena, run->plan->ensemble->step_count * sizeof(struct serve_version *));
    r->times.queue_start = run->begun;
    r->spent = &run->spent;
    atomic_init(&run->open, 1);
    atomic_init(&run->came, &none);
    ensemble_flow_init(&run->flow, run->plan->ensemble, &r->arena, run->wanted,
                       ensemble_value_unref);
    ensemble_run_show(run);
    struct err *e = find_steps(run);
    if (e) {
        ensemble_run_fail(run, e);
    } else {
        ensemble_run_put_inputs(run);
        start_steps(run, run->flow.first, run->begun);
    }
    bool over = ensemble_run_answer(run, run->flow.first);
    if (!over && ensemble_flow_over(&run->flow)) {
        ensemble_run_finish(run);
        over = true;
    }
    ensemble_run_work(run, over);
}

/* -- the scheduler interface -- */

static void ensemble_run_accept(struct scheduler *s, struct list *requests, bool on_loop)
{
    (void)on_loop;
    struct list *node;
    while ((node = list_pop(requests)))
        ensemble_run_start((struct ensemble_run_plan *)s,
                           LIST_ITEM(node, struct request, queue_node));
}

/* Every scheduler must have the functions below. An ensemble queues nothing and has no runners;
 * what waits are its parked steps. */

static bool ensemble_run_push(struct scheduler *s, struct request *r, time_ns now)
{
    (void)s;
    (void)r;
    (void)now;
    CHECK(false); /* accept takes every request */
    return false;
}

static void ensemble_run_wake(struct scheduler *s, time_ns now)
{
    (void)s;
    (void)now;
}

static size_t ensemble_run_expire(struct scheduler *s, time_ns now, struct list *ret_list)
{
    (void)s;
    (void)now;
    (void)ret_list;
    return 0;
}

static bool ensemble_run_has_dropped(const struct scheduler *s)
{
    (void)s;
    return false;
}

static bool ensemble_run_remove(struct scheduler *s, struct request *r)
{
    (void)s;
    (void)r;
    return false;
}

static size_t ensemble_run_depth(const struct scheduler *s)
{
    const struct ensemble_run_plan *p = (const struct ensemble_run_plan *)s;
    size_t sum = 0;
    for (uint32_t i = 0; p->credits && i < p->ensemble->step_count; i++)
        sum += atomic_load_explicit(&p->credits[i].waiting, memory_order_relaxed);
    return sum;
}

static time_ns ensemble_run_oldest(const struct scheduler *s)
{
    const struct ensemble_run_plan *p = (const struct ensemble_run_plan *)s;
    time_ns oldest = TIME_NEVER;
    for (uint32_t i = 0; p->credits && i < p->ensemble->step_count; i++) {
        time_ns since = ensemble_credit_oldest(&p->credits[i]);
        oldest = since < oldest ? since : oldest;
    }
    return oldest;
}

static time_ns ensemble_run_never(const struct scheduler *s)
{
    (void)s;
    return TIME_NEVER;
}

/* take, ready and similar functions are missing because an ensemble has no runners. */
static const struct scheduler_ops ensemble_run_ops = {
    .accept = ensemble_run_accept,
    .push = ensemble_run_push,
    .wake = ensemble_run_wake,
    .expire = ensemble_run_expire,
    .has_dropped = ensemble_run_has_dropped,
    .next_deadline = ensemble_run_never,
    .remove = ensemble_run_remove,
    .depth = ensemble_run_depth,
    .oldest = ensemble_run_oldest,
    .free = ensemble_run_free,
};

static struct err *ensemble_run_make(struct serve_version *v, struct scheduler **ret)
{
    if (v->config->scheduler != CONFIG_SCHEDULER_ENSEMBLE)
        return NULL;
    struct ensemble_run_plan *p = plan_new(v->config);
    p->base = (struct scheduler){.ops = ensemble_run_ops, .version = v, .follows = true};
    v->target.cancelled = ensemble_run_cancel;
    *ret = &p->base;
    return NULL;
}

static bool ensemble_run_alone(const struct Inference__ModelConfig *proto)
{
    return proto->scheduling_choice_case ==
           INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
}

const struct feature ensemble_run_feature = {.make = ensemble_run_make,
                                             .stands_alone = ensemble_run_alone};
