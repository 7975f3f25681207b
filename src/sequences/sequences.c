#include "sequences/sequences.h"

#include "base/check.h"
#include "base/debug_env.h"
#include "base/log.h"
#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/state.h"
#include "model/config.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "sequences/sequencer.h"
#include "serve/deadline.h"
#include "serve/ordering.h"
#include "serve/reject.h"
#include "serve/runner.h"
#include "sequences/sequence_controls.h"
#include "sequences/sequence_state.h"
#include "serve/version.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef Inference__ModelSequenceBatching sequence_proto;

#define OLDEST INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_OLDEST
#define DIRECT INFERENCE__MODEL_SEQUENCE_BATCHING__STRATEGY_CHOICE_DIRECT

/* Zeroed bytes that requests read as inputs. Requests may read them for long, so they are kept
 * until the version is freed. */
struct zeros {
    struct list node;
    uint64_t size;
    char bytes[];
};

static struct sequencer *make_queue(const struct model_config *config, const sequence_proto *s)
{
    struct sequencer_config c = {
        .oldest = s->strategy_choice_case == OLDEST,
        .max_batch_size = (uint32_t)config->max_batch_size,
        .idle_us = s->max_sequence_idle_microseconds,
        .iterative = s->iterative_sequence,
        .hold_until = debug_env_number("TRITONSERVER_DELAY_SCHEDULER"),
        .hold_backlog = debug_env_number("TRITONSERVER_BACKLOG_DELAY_SCHEDULER"),
    };
    const char **shape_tensors = mem_alloc((config->input_count + 1) * sizeof(*shape_tensors));
    for (uint32_t i = 0; i < config->input_count; i++)
        if (config->inputs[i].shape_tensor)
            shape_tensors[c.shape_tensor_count++] = config->inputs[i].name;
    c.shape_tensors = shape_tensors;
    if (c.oldest) {
        c.candidates = (uint32_t)s->oldest->max_candidate_sequences;
        c.preferred = s->oldest->preferred_batch_size;
        c.preferred_count = s->oldest->n_preferred_batch_size;
        c.delay_us = s->oldest->max_queue_delay_microseconds;
    } else if (s->strategy_choice_case == DIRECT) {
        c.delay_us = s->direct->max_queue_delay_microseconds;
        c.min_utilization = s->direct->minimum_slot_utilization;
    }
    struct sequencer *queue = sequencer_new(&c);
    mem_free(shape_tensors);
    return queue;
}

struct err *sequences_new(const struct model_config *config, const char *model_dir,
                          struct sequences **ret)
{
    *ret = NULL;
    if (config->scheduler != CONFIG_SCHEDULER_SEQUENCE)
        return NULL;
    struct state_plan *states;
    struct err *e = sequence_state_plan(config, model_dir, &states);
    if (e)
        return e;
    const sequence_proto *proto = config->proto->sequence_batching;
    struct sequences *s = MEM_NEW(struct sequences);
    s->queue = make_queue(config, proto);
    s->controls = sequence_controls_new(config);
    s->states = states;
    s->iterative = proto->iterative_sequence;
    list_init(&s->zeros);
    *ret = s;
    return NULL;
}

static struct sequences *sequences_of(const struct serve_version *v)
{
    return (struct sequences *)v->scheduler;
}

static struct sequencer *sequences_queue(const struct scheduler *s)
{
    return ((const struct sequences *)s)->queue;
}

static void sequences_stop(struct scheduler *s)
{
    struct list none;
    list_init(&none);
    CHECK(sequencer_drain(sequences_queue(s), &none) == 0);
}

void sequences_free(struct sequences *s)
{
    if (!s)
        return;
    sequencer_free(s->queue);
    sequence_controls_free(s->controls);
    state_plan_free(s->states);
    struct list *node;
    while ((node = list_pop(&s->zeros)))
        mem_free(LIST_ITEM(node, struct zeros, node));
    mem_free(s);
}

/* -- accepting requests -- */

/* Makes a request without a correlation id a sequence of its own. The model sees an id that is
 * far from those of clients, also in 32 bits: from 2^64 - 1 on downwards. */
static void sequences_make_id(struct sequences *s, struct request *r)
{
    r->correlation_string = NULL;
    r->correlation_id =
        UINT64_MAX - atomic_fetch_add_explicit(&s->ids_made, 1, memory_order_relaxed);
    r->unnamed = true;
    r->flags = REQUEST_SEQUENCE_START;
    if (!sequence_controls_want_text(s->controls))
        return;
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRIu64, r->correlation_id);
    r->correlation_string = arena_strndup(&r->arena, text, (size_t)len);
}

static struct err *sequences_admit(struct serve_version *v, struct request *r)
{
    if (r->batch_size > 1)
        return err_new(STATUS_INVALID_ARG,
                       "inference request to model '%s' must specify batch-size 1 due to "
                       "requirements of sequence batcher",
                       v->name);
    if (request_names_sequence(r))
        return sequence_controls_check(sequences_of(v)->controls, r, v->name);
    if (!sequences_of(v)->iterative)
        return err_new(STATUS_INVALID_ARG,
                       "inference request to model '%s' must specify a non-zero or non-empty "
                       "correlation ID",
                       v->name);
    sequences_make_id(sequences_of(v), r);
    return NULL;
}

/* Answers requests that cannot be part of a sequence; the others get their control inputs. */
static void sequences_accept(struct scheduler *base, struct list *requests, bool on_loop)
{
    (void)on_loop;
    struct sequences *s = (struct sequences *)base;
    LIST_EACH (node, requests) {
        struct request *r = LIST_ITEM(node, struct request, queue_node);
        struct err *e = sequences_admit(base->version, r);
        if (!e && s->states)
            e = state_join(r, s->states);
        if (!e) {
            sequence_controls_add(s->controls, r, true);
            continue;
        }
        list_remove(node);
        reject_request(r, STATS_OTHER, e);
    }
}

/* The correlation id as messages show it. */
static const char *id_text(const struct request *r, char room[24])
{
    if (r->correlation_string)
        return r->correlation_string;
    snprintf(room, 24, "%" PRIu64, r->correlation_id);
    return room;
}

/* The error for a request that continues a sequence which nobody started. */
static struct err *sequences_refusal(const struct scheduler *s, const struct request *r,
                                     enum stats_reason *ret_reason)
{
    char room[24];
    *ret_reason = STATS_OTHER;
    return err_new(STATUS_INVALID_ARG,
                   "inference request for sequence %s to model '%s' must specify the START flag "
                   "on the first request of the sequence",
                   id_text(r, room), s->version->name);
}

static bool sequences_push(struct scheduler *base, struct request *r, time_ns now)
{
    struct sequences *s = (struct sequences *)base;
    enum sequencer_push said = sequencer_push(s->queue, now, r);
    if (said == SEQUENCER_PUSH_CONFLICT) {
        snprintf(s->conflict, sizeof(s->conflict), "%s", id_text(r, (char[24]){0}));
        atomic_store_explicit(&s->conflicts, true, memory_order_relaxed);
    }
    return said != SEQUENCER_PUSH_UNKNOWN;
}

static void sequences_report(struct scheduler *base)
{
    struct sequences *s = (struct sequences *)base;
    struct serve_version *v = base->version;
    char id[sizeof(s->conflict)];
    if (!atomic_load_explicit(&s->conflicts, memory_order_relaxed))
        return;
    mutex_lock(&v->lock);
    memcpy(id, s->conflict, sizeof(id));
    s->conflict[0] = '\0';
    atomic_store_explicit(&s->conflicts, false, memory_order_relaxed);
    mutex_unlock(&v->lock);
    if (id[0])
        LOG_WARN("sequence %s for model '%s' has a conflict. The previous sequence did not end "
                 "before this sequence start. Previous sequence will be terminated early.",
                 id, v->name);
}

/* -- running batches -- */

static void sequences_wake(struct scheduler *s, time_ns now)
{
    (void)now;
    struct runner *r;
    struct err *failed = NULL;
    while ((r = sequencer_look(sequences_queue(s))) != NULL) {
        struct err *e = runner_look(r);
        err_free(failed ? e : NULL);
        failed = failed ? failed : e;
    }
    if (failed)
        runner_give_up(s->version, failed);
}

static const char *zeros_of(struct sequences *s, uint64_t size)
{
    struct zeros *z = list_empty(&s->zeros) ? NULL : LIST_ITEM(s->zeros.prev, struct zeros, node);
    if (z && z->size >= size)
        return z->bytes;
    uint64_t room = z && z->size * 2 > size ? z->size * 2 : size;
    z = mem_zalloc(sizeof(*z) + room);
    z->size = room;
    list_append(&s->zeros, &z->node);
    return z->bytes;
}

static void forget_response(struct response *r, void *owner)
{
    (void)owner;
    response_free(r);
}

static const int64_t *copy_shape(struct request *r, const struct tensor_input *in)
{
    int64_t *dims = arena_alloc(&r->arena, (in->model_rank + 1) * sizeof(*dims));
    memcpy(dims, in->model_shape, in->model_rank * sizeof(*dims));
    return dims;
}

/* Makes a request for a row that no sequence fills: it has the inputs of another request of the
 * batch, all zero. Caller holds v->lock. */
static struct request *make_gap(struct serve_version *v, const struct request *like)
{
    struct sequences *s = sequences_of(v);
    version_pin(v);
    struct request *r = request_new(&v->target, NULL, forget_response, NULL);
    r->batch_size = like->batch_size;
    r->gap = true;
    uint32_t given = like->input_count - sequence_controls_count(s->controls);
    for (uint32_t i = 0; i < given; i++) {
        const struct tensor_input *in = &like->inputs[i];
        uint64_t size = in->datatype == DATATYPE_BYTES ? 4 * in->elements : in->byte_size;
        struct tensor_piece piece = {
            .data = zeros_of(s, size), .size = size, .memory = BUF_MEMORY_CPU};
        struct tensor_input *to = request_add_input(r, in->name, strlen(in->name), in->datatype,
                                                    in->shape, in->rank, &piece, size ? 1 : 0);
        to->model_shape = copy_shape(r, in);
        to->model_rank = in->model_rank;
        to->elements = in->elements;
    }
    for (uint32_t i = 0; i < like->output_count; i++)
        request_add_output(r, like->outputs[i], strlen(like->outputs[i]));
    if (s->states)
        /* its inputs exist already, so no error is possible */
        err_free(state_join_alone(r, s->states));
    sequence_controls_add(s->controls, r, false);
    return r;
}

static struct err *sequences_sample(struct scheduler *s, struct request *r)
{
    const struct state_plan *states = ((struct sequences *)s)->states;
    return states ? state_join_alone(r, states) : NULL;
}

/* Makes room for this many requests and some more. The room grows on demand because
 * max_batch_size may be much larger than any batch. */
static void sequences_make_room(struct runner *r, size_t most)
{
    if (most <= r->room)
        return;
    r->room = most < 8 ? 8 : 2 * most;
    r->batch = mem_realloc(r->batch, r->room * sizeof(*r->batch));
}

static size_t sequences_take(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake)
{
    struct serve_version *v = s->version;
    struct sequencer *queue = sequences_queue(s);
    sequences_make_room(r, sequencer_most(queue, r->seat));
    size_t n = sequencer_take(queue, r->seat, now, r->batch, r->room, ret_wake);
    for (size_t i = 0; i < n; i++)
        if (!r->batch[i])
            r->batch[i] = make_gap(v, r->batch[n - 1]);
    return n;
}

/* -- requests that come back -- */

/* Wakes runners and sets the timer after the sequencer changed outside of a submission. Caller
 * holds v->lock. */
static void follow_up(struct serve_version *v)
{
    sequences_wake(v->scheduler, 0);
    deadline_watch(v->deadline);
}

/* Ends a request that the backend wants again but that has no sequence: one that fills a gap, or
 * a warm-up sample. */
static void end_alone(struct request *r)
{
    response_send_flags(r, RESPONSE_FINAL);
    request_release(r);
}

/* The backend gave the request back to execute it again. Lock not held; any thread. */
static void sequences_again(struct request *r)
{
    struct serve_version *v = version_of(r);
    if (!r->slots[REQUEST_SLOT_SEQUENCE]) {
        end_alone(r);
        return;
    }
    version_pin(v);
    r->flags = 0;
    sequence_controls_again(sequences_of(v)->controls, r);
    mutex_lock(&v->lock);
    sequencer_again(sequences_of(v)->queue, clock_now_ns(), r);
    follow_up(v);
    mutex_unlock(&v->lock);
    version_unpin(v);
}

/* The backend released the request for good. */
static void sequences_ended(struct request *r)
{
    if (!r->slots[REQUEST_SLOT_SEQUENCE])
        return;
    struct serve_version *v = version_of(r);
    const struct sequences *s = sequences_of(v);
    mutex_lock(&v->lock);
    sequencer_released(s->queue, clock_now_ns(), r, s->iterative);
    follow_up(v);
    mutex_unlock(&v->lock);
}

/* -- the scheduler interface -- */

static bool sequences_ready(struct scheduler *s, struct runner *r, time_ns now, time_ns *ret_wake)
{
    return sequencer_ready(sequences_queue(s), r->seat, now, ret_wake);
}

static size_t sequences_expire(struct scheduler *s, time_ns now, struct list *ret_list)
{
    return sequencer_expire(sequences_queue(s), now, ret_list);
}

static bool sequences_has_dropped(const struct scheduler *s)
{
    return sequencer_has_dropped(sequences_queue(s));
}

static time_ns sequences_next_deadline(const struct scheduler *s)
{
    return sequencer_next_deadline(sequences_queue(s));
}

static bool sequences_remove(struct scheduler *s, struct request *r)
{
    return sequencer_remove(sequences_queue(s), r);
}

static size_t sequences_drain(struct scheduler *s, struct list *ret_list)
{
    return sequencer_drain(sequences_queue(s), ret_list);
}

static size_t sequences_depth(const struct scheduler *s)
{
    return sequencer_depth(sequences_queue(s));
}

static time_ns sequences_oldest(const struct scheduler *s)
{
    return sequencer_oldest(sequences_queue(s));
}

static void sequences_part(struct scheduler *s, size_t requests)
{
    struct sequencer *queue = sequences_queue(s);
    if (sequencer_depth(queue) + sequencer_taken(queue) < requests)
        return; /* some are on their way here, or fill gaps */
    sequencer_close(queue);
    follow_up(s->version);
}

static void sequences_join(struct scheduler *s, struct runner *r)
{
    if (!r->seat)
        r->seat = sequencer_join(sequences_queue(s), r);
}

static void sequences_leave(struct scheduler *s, struct runner *r)
{
    (void)s;
    if (r->seat)
        sequencer_leave(r->seat);
}

static bool sequences_busy(const struct scheduler *s, const struct runner *r)
{
    (void)s;
    return r->seat && sequencer_busy(r->seat);
}

static void sequences_drop(struct scheduler *s, struct runner *r)
{
    (void)s;
    sequencer_drop(r->seat);
}

static void sequences_end(struct scheduler *s)
{
    sequences_free((struct sequences *)s);
}

static const struct scheduler_ops sequences_ops = {
    .accept = sequences_accept,
    .sample = sequences_sample,
    .push = sequences_push,
    .refusal = sequences_refusal,
    .take = sequences_take,
    .ready = sequences_ready,
    .turn = runner_turn,
    .pick = runner_pick,
    .wake = sequences_wake,
    .expire = sequences_expire,
    .has_dropped = sequences_has_dropped,
    .next_deadline = sequences_next_deadline,
    .remove = sequences_remove,
    .drain = sequences_drain,
    .depth = sequences_depth,
    .oldest = sequences_oldest,
    .part = sequences_part,
    .report = sequences_report,
    .join = sequences_join,
    .leave = sequences_leave,
    .busy = sequences_busy,
    .drop = sequences_drop,
    .stop = sequences_stop,
    .free = sequences_end,
};

static bool keeps_order(const sequence_proto *s)
{
    return s->strategy_choice_case == OLDEST && s->oldest->preserve_ordering;
}

static struct err *sequences_make(struct serve_version *v, struct scheduler **ret)
{
    struct sequences *s;
    struct err *e = sequences_new(v->config, v->model ? v->model->dir : "", &s);
    if (e || !s)
        return e;
    s->base = (struct scheduler){.ops = sequences_ops,
                                 .version = v,
                                 .late = "timeout of the corresponding sequence has been expired"};
    v->target.again = s->iterative ? sequences_again : NULL;
    v->target.ended = sequences_ended;
    if (keeps_order(v->config->proto->sequence_batching))
        ordering_wrap(&s->base, ORDERING_BY_TAKE);
    *ret = &s->base;
    return NULL;
}

static struct err *sequences_check_states(const struct model_config *config, const char *model_dir,
                                          const char **ret_mend)
{
    struct state_plan *plan = NULL;
    if (config->scheduler != CONFIG_SCHEDULER_SEQUENCE)
        return NULL;
    struct err *e = sequence_state_plan(config, model_dir, &plan);
    if (e)
        *ret_mend = "correct the state; its file lies in the model's folder initial_state";
    state_plan_free(plan);
    return e;
}

const struct feature sequences_feature = {.make = sequences_make, .check = sequences_check_states};
