#include "infer/state.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/slab.h"
#include "base/token.h"
#include "model/config.h"
#include "model/shape.h"
#include "os/mutex.h"
#include "os/pool.h"

#include <string.h>

_Static_assert(REQUEST_MAX_TENSORS + STATE_MAX_COUNT - 1 <= TOKEN_MAX_PART,
               "handles of states are parts of a request behind those of its inputs");

#define MAX_RANK 1024u /* dimensions of a value that a backend writes, at most */

struct state_set {
    atomic_uint refs;
    uint32_t count;
    struct mutex lock; /* rank LEAF; guards which values are current */
    struct state_value *values[];
};

/* A request's data for one state. */
struct state_part {
    uint32_t input; /* index among the inputs */
    /* a reference; NULL before the request runs, or if it has no sequence */
    struct state_value *read;
    /* a reference; being written, and private to this request; NULL = none */
    struct state_value *next;
    /* a reference; the value published last: the next one has the same type and shape */
    struct state_value *last;
    struct tensor_piece *piece; /* the piece of the input; in the arena */
    struct buffer_attributes attributes;
};

struct request_states {
    const struct state_plan *plan;
    /* a reference; NULL before the request runs, unless the request starts a sequence */
    struct state_set *set;
    struct state_part slots[]; /* plan->count */
};

/* -- plans and values -- */

struct state_plan *state_plan_new(uint32_t room)
{
    return mem_zalloc(sizeof(struct state_plan) + room * sizeof(struct state_spec));
}

void state_plan_free(struct state_plan *p)
{
    for (uint32_t i = 0; p && i < p->count; i++)
        state_value_unref(p->specs[i].initial);
    mem_free(p);
}

struct err *state_value_new(const char *name, enum datatype datatype, const int64_t *shape,
                            uint32_t rank, struct buf *data, uint64_t byte_size,
                            struct state_value **ret)
{
    uint64_t elements;
    bool known = datatype == DATATYPE_BYTES || datatype_bytes(datatype) > 0;
    if (!known || rank > MAX_RANK || (rank && !shape) || !shape_elements(shape, rank, &elements)) {
        buf_unref(data);
        return err_new(STATUS_INVALID_ARG, "state '%s' cannot have this %s", name,
                       known ? "shape" : "data type");
    }
    struct state_value *v = mem_zalloc(sizeof(*v) + rank * sizeof(v->shape[0]));
    atomic_init(&v->refs, 1);
    v->datatype = datatype;
    v->rank = rank;
    v->elements = elements;
    v->data = data;
    v->byte_size = byte_size;
    if (rank)
        memcpy(v->shape, shape, rank * sizeof(v->shape[0]));
    *ret = v;
    return NULL;
}

static struct err *memory(const char *name, uint64_t byte_size,
                          struct err *(*make)(size_t size, struct buf **ret), struct buf **ret)
{
    if (byte_size > INT64_MAX)
        return err_new(STATUS_UNAVAILABLE, "state '%s': there is no memory of that size", name);
    struct err *e = make(byte_size ? byte_size : 1, ret);
    return e ? err_wrap(e, "state '%s'", name) : NULL;
}

struct err *state_memory(const char *name, uint64_t byte_size, struct buf **ret)
{
    return memory(name, byte_size, pool_buf, ret);
}

struct err *state_zeros(const char *name, uint64_t byte_size, struct buf **ret)
{
    return memory(name, byte_size, pool_buf_zeroed, ret);
}

static struct state_value *value_ref(struct state_value *v)
{
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

void state_value_unref(struct state_value *v)
{
    if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
        return;
    buf_unref(v->data);
    mem_free(v);
}

/* Makes a value with the same type and shape. */
static struct state_value *value_like(const struct state_value *v, struct buf *data,
                                      uint64_t byte_size)
{
    struct state_value *copy;
    struct err *e = state_value_new("", v->datatype, v->shape, v->rank, data, byte_size, &copy);
    CHECK(!e);
    return copy;
}

/* -- the values of a sequence -- */

/* The initial value of a sequence: the shared one, or a private copy if it will be overwritten. */
static struct err *begin_value(const struct state_spec *spec, struct state_value **ret)
{
    struct buf *copy;
    if (!spec->in_place) {
        *ret = value_ref(spec->initial);
        return NULL;
    }
    const struct state_value *from = spec->initial;
    struct err *e = state_memory(spec->input_name, from->byte_size, &copy);
    if (e)
        return e;
    if (from->byte_size)
        memcpy(copy->data, from->data->data, from->byte_size);
    *ret = value_like(from, copy, from->byte_size);
    return NULL;
}

void state_set_unref(struct state_set *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        state_value_unref(s->values[i]);
    mutex_fini(&s->lock);
    mem_free(s);
}

static struct state_set *set_ref(struct state_set *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

static struct err *set_new(const struct state_plan *plan, struct state_set **ret)
{
    struct state_set *s = mem_zalloc(sizeof(*s) + plan->count * sizeof(struct state_value *));
    atomic_init(&s->refs, 1);
    s->count = plan->count;
    mutex_init(&s->lock, MUTEX_RANK_LEAF);
    for (uint32_t i = 0; i < plan->count; i++) {
        struct err *e = begin_value(&plan->specs[i], &s->values[i]);
        if (e) {
            state_set_unref(s);
            return e;
        }
    }
    *ret = s;
    return NULL;
}

static struct state_value *set_get(struct state_set *s, uint32_t index)
{
    mutex_lock(&s->lock);
    struct state_value *v = value_ref(s->values[index]);
    mutex_unlock(&s->lock);
    return v;
}

/* -- requests -- */

static struct request_states *states_new(struct request *r, const struct state_plan *plan)
{
    struct request_states *s =
        arena_zalloc(&r->arena, sizeof(*s) + plan->count * sizeof(s->slots[0]));
    s->plan = plan;
    r->states = s;
    return s;
}

static struct tensor_input *state_find_input(struct request *r, const char *name)
{
    for (uint32_t i = 0; i < r->input_count; i++)
        if (strcmp(r->inputs[i].name, name) == 0)
            return &r->inputs[i];
    return NULL;
}

static bool state_add_input(struct request *r, const struct state_spec *spec,
                            struct state_part *slot)
{
    struct tensor_input *in = spec->is_input ? state_find_input(r, spec->input_name) : NULL;
    if (!in)
        in = request_add_input(r, spec->input_name, strlen(spec->input_name),
                               spec->initial->datatype, NULL, 0, NULL, 0);
    if (!in)
        return false;
    in->policies = NULL;
    in->ragged_ok = true; /* shapes are compared by state_fits */
    slot->input = (uint32_t)(in - r->inputs);
    slot->piece = arena_zalloc(&r->arena, sizeof(*slot->piece));
    slot->piece->memory = BUF_MEMORY_CPU;
    return true;
}

static struct err *state_too_many(const struct request *r)
{
    return request_error(r, "expected at most %u inputs, states included", REQUEST_MAX_TENSORS);
}

struct err *state_join(struct request *r, const struct state_plan *plan)
{
    struct request_states *s = states_new(r, plan);
    for (uint32_t i = 0; i < plan->count; i++)
        if (!state_add_input(r, &plan->specs[i], &s->slots[i]))
            return state_too_many(r);
    return r->flags & REQUEST_SEQUENCE_START ? set_new(plan, &s->set) : NULL;
}

static void state_fill(struct tensor_input *in, const struct state_part *slot)
{
    const struct state_value *v = slot->read;
    in->datatype = v->datatype;
    in->shape = in->model_shape = v->shape;
    in->rank = in->model_rank = v->rank;
    in->elements = v->elements;
    in->byte_size = v->byte_size;
    in->pieces = slot->piece;
    in->piece_count = v->byte_size ? 1 : 0;
    slot->piece->data = v->data->data;
    slot->piece->size = v->byte_size;
}

struct err *state_join_alone(struct request *r, const struct state_plan *plan)
{
    struct request_states *s = states_new(r, plan);
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct state_spec *spec = &plan->specs[i];
        struct state_part *slot = &s->slots[i];
        if (state_find_input(r, spec->input_name))
            continue;
        if (!state_add_input(r, spec, slot))
            return state_too_many(r);
        slot->read = value_ref(spec->initial);
        state_fill(&r->inputs[slot->input], slot);
    }
    return NULL;
}

void state_enter(struct request *r, struct state_set **of_sequence)
{
    struct request_states *s = r->states;
    if (!s->set) {
        CHECK(*of_sequence); /* a sequence runs only after its START */
        s->set = set_ref(*of_sequence);
    } else if (*of_sequence != s->set) {
        state_set_unref(*of_sequence);
        *of_sequence = set_ref(s->set);
    }
    for (uint32_t i = 0; i < s->plan->count; i++) {
        struct state_part *slot = &s->slots[i];
        state_value_unref(slot->read);
        slot->read = set_get(s->set, i);
        state_value_unref(slot->next); /* a value that an earlier execution of this request wrote */
        slot->next = NULL;
        state_fill(&r->inputs[slot->input], slot);
    }
}

static bool state_same_shape(const struct state_value *a, const struct state_value *b,
                             uint32_t skip)
{
    if (a->rank != b->rank || a->rank < skip)
        return a->rank == b->rank;
    return shape_equal(a->shape + skip, a->rank - skip, b->shape + skip, b->rank - skip);
}

bool state_fits(const struct request *a, struct state_set *a_kept, const struct request *b,
                struct state_set *b_kept)
{
    const struct state_plan *plan = a->states->plan;
    struct state_set *x = a->states->set ? a->states->set : a_kept;
    struct state_set *y = b->states->set ? b->states->set : b_kept;
    bool same = true;
    for (uint32_t i = 0; plan->variable && x && y && same && i < plan->count; i++) {
        struct state_value *v = set_get(x, i);
        struct state_value *w = set_get(y, i);
        same = state_same_shape(v, w, plan->batched);
        state_value_unref(v);
        state_value_unref(w);
    }
    return same;
}

void state_release(struct request *r)
{
    struct request_states *s = r->states;
    r->states = NULL;
    for (uint32_t i = 0; i < s->plan->count; i++) {
        state_value_unref(s->slots[i].read);
        state_value_unref(s->slots[i].next);
        state_value_unref(s->slots[i].last);
    }
    state_set_unref(s->set);
}

/* -- backends -- */

struct err *state_begin(struct request *r, const char *name, enum datatype datatype,
                        const int64_t *shape, uint32_t rank, uint32_t *ret)
{
    struct request_states *s = r->states;
    if (!s)
        return err_new(STATUS_INVALID_ARG,
                       "unable to add state '%s'. State configuration is missing for model '%s'.",
                       name, r->config->name);
    uint32_t i = 0;
    while (i < s->plan->count && strcmp(s->plan->specs[i].output_name, name) != 0)
        i++;
    if (i == s->plan->count)
        return err_new(STATUS_INVALID_ARG, "state '%s' is not a valid state name.", name);
    struct state_part *slot = &s->slots[i];
    struct buf *kept = slot->next ? slot->next->data : NULL;
    struct state_value *v;
    struct err *e = state_value_new(name, datatype, shape, rank, kept ? buf_ref(kept) : NULL,
                                    kept ? slot->next->byte_size : 0, &v);
    if (e)
        return e;
    state_value_unref(slot->next);
    slot->next = v;
    *ret = i;
    return NULL;
}

struct err *state_buffer(struct request *r, uint32_t index, uint64_t byte_size, void **ret)
{
    struct state_part *slot = &r->states->slots[index];
    const struct state_spec *spec = &r->states->plan->specs[index];
    if (!slot->next)
        slot->next = value_like(slot->last, NULL, 0);
    struct state_value *v = slot->next;
    if (!v->data || v->byte_size != byte_size) {
        struct buf *data = NULL;
        struct err *e = NULL;
        if (spec->in_place && r->states->set && slot->read && slot->read->byte_size == byte_size)
            data = buf_ref(slot->read->data);
        else if (r->target->fills_outputs)
            e = state_memory(spec->output_name, byte_size, &data);
        else
            e = state_zeros(spec->output_name, byte_size, &data);
        if (e)
            return e;
        buf_unref(v->data);
        v->data = data;
        v->byte_size = byte_size;
    }
    *ret = v->data->data;
    return NULL;
}

struct buffer_attributes *state_attributes(struct request *r, uint32_t index)
{
    struct state_part *slot = &r->states->slots[index];
    const struct state_value *v = slot->next ? slot->next : slot->last;
    buffer_attributes_init(&slot->attributes, v->byte_size, BUF_MEMORY_CPU, 0);
    return &slot->attributes;
}

struct err *state_publish(struct request *r, uint32_t index)
{
    struct request_states *s = r->states;
    struct state_part *slot = &s->slots[index];
    if (!slot->next || !slot->next->data)
        return err_new(STATUS_INVALID_ARG,
                       "state '%s' has no new contents: TRITONBACKEND_StateBuffer was not called "
                       "since it was made or updated",
                       s->plan->specs[index].output_name);
    state_value_unref(slot->last);
    slot->last = slot->next;
    slot->next = NULL;
    if (!s->set)
        return NULL;
    mutex_lock(&s->set->lock);
    struct state_value *old = s->set->values[index];
    s->set->values[index] = value_ref(slot->last);
    mutex_unlock(&s->set->lock);
    state_value_unref(old);
    return NULL;
}

void *state_handle(const struct request *r, uint32_t index)
{
    return token_make(slab_token(r), TOKEN_INPUT, REQUEST_MAX_TENSORS + index);
}

struct request *state_from(const void *handle, uint32_t *ret_index)
{
    uint32_t part;
    struct request *r = token_find(handle, TOKEN_INPUT, &part);
    if (!r || part < REQUEST_MAX_TENSORS || !r->states ||
        part - REQUEST_MAX_TENSORS >= r->states->plan->count)
        return NULL;
    *ret_index = part - REQUEST_MAX_TENSORS;
    return r;
}
