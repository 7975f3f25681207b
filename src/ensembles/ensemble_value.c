#include "ensembles/ensemble_value.h"

#include "base/check.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "model/shape.h"
#include "ensembles/ensemble.h"

#include <string.h>

struct ensemble_value *ensemble_value_input(struct request *r, const struct tensor_input *in)
{
    struct ensemble_value *v = arena_alloc(&r->arena, sizeof(*v));
    *v = (struct ensemble_value){
        .datatype = in->datatype,
        .shape = in->model_shape,
        .rank = in->model_rank,
        .batch = r->config->max_batch_size > 0 ? r->batch_size : 0,
        .byte_size = in->byte_size,
        .pieces = in->pieces,
        .piece_count = in->piece_count,
        .policies = in->policies,
    };
    return v;
}

static struct err *read_flag(const struct param *p, uint32_t flag, uint32_t *flags)
{
    if (p->type != PARAM_BOOL)
        return err_new(STATUS_INVALID_ARG,
                       "expect parameter '%s' to be TRITONSERVER_PARAMETER_BOOL", p->name);
    if (p->b)
        *flags |= flag;
    return NULL;
}

/* Reads the parameters of a response that say to which sequence it belongs. */
static struct err *read_sequence(const struct response *r, struct ensemble_sequence *s)
{
    bool own_flags = true;
    uint32_t flags = 0;
    struct err *e = NULL;
    for (const struct param *p = r->params.first; p && !e; p = p->next) {
        if (strcmp(p->name, "sequence_id") == 0) {
            if (p->type != PARAM_INT && p->type != PARAM_STRING)
                return err_new(STATUS_INVALID_ARG,
                               "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT "
                               "or TRITONSERVER_PARAMETER_STRING");
            s->correlation_id = p->type == PARAM_INT ? (uint64_t)p->i : 0;
            s->correlation_string = p->type == PARAM_STRING ? p->bytes.data : NULL;
            own_flags = false;
        } else if (strcmp(p->name, "sequence_start") == 0) {
            e = read_flag(p, REQUEST_SEQUENCE_START, &flags);
            own_flags = false;
        } else if (strcmp(p->name, "sequence_end") == 0) {
            e = read_flag(p, REQUEST_SEQUENCE_END, &flags);
            own_flags = false;
        }
    }
    if (!own_flags)
        s->flags = flags;
    return e;
}

struct err *ensemble_value_source(struct response *r, const struct ensemble_sequence *own,
                                  struct ensemble_source **ret)
{
    struct ensemble_source *s = arena_alloc(&r->arena, sizeof(*s));
    s->response = r;
    s->sequence = *own;
    atomic_init(&s->refs, 1);
    struct err *e = read_sequence(r, &s->sequence);
    if (e)
        return e;
    *ret = s;
    return NULL;
}

void ensemble_value_unref_source(struct ensemble_source *s)
{
    if (!s)
        return;
    unsigned refs = atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel);
    CHECK(refs);
    if (refs == 1)
        response_free(s->response);
}

struct ensemble_value *ensemble_value_output(struct ensemble_source *s,
                                             const struct tensor_output *o)
{
    struct response *r = s->response;
    struct ensemble_value *v = arena_zalloc(&r->arena, sizeof(*v));
    *v = (struct ensemble_value){
        .source = s,
        .datatype = o->datatype,
        .shape = o->shape,
        .rank = o->rank,
        .batch = r->request->config->max_batch_size > 0 ? r->request->batch_size : 0,
        .byte_size = o->byte_size,
        .buf = o->buf,
    };
    if (o->byte_size) {
        struct tensor_piece *piece = arena_alloc(&r->arena, sizeof(*piece));
        *piece = (struct tensor_piece){
            .data = o->data, .size = o->byte_size, .memory = o->memory, .device = o->device};
        v->pieces = piece;
        v->piece_count = 1;
    }
    ensemble_value_ref(v);
    return v;
}

void ensemble_value_ref(const struct ensemble_value *v)
{
    if (v->source)
        atomic_fetch_add_explicit(&v->source->refs, 1, memory_order_relaxed);
}

void ensemble_value_unref(void *value)
{
    const struct ensemble_value *v = value;
    ensemble_value_unref_source(v->source);
}

static bool ensemble_value_fits(const int64_t *dims, uint32_t rank, const struct ensemble_value *v)
{
    bool fit = rank == v->rank;
    for (uint32_t i = 0; fit && i < rank; i++)
        fit = dims[i] == v->shape[i] || dims[i] == SHAPE_ANY || v->shape[i] == SHAPE_ANY;
    return fit;
}

uint32_t ensemble_value_shape(const struct ensemble_value *v, const int64_t *dims, uint32_t rank,
                              bool batching, int64_t *ret)
{
    uint32_t add = 0;
    uint32_t cut = 0;
    if (batching && v->batch == 0)
        add = ensemble_value_fits(dims, rank, v);
    else if (!batching && v->batch == 1)
        cut = v->rank > 0 && !ensemble_value_fits(dims, rank, v);
    ret[0] = 1;
    if (v->rank > cut)
        memcpy(ret + add, v->shape + cut, (v->rank - cut) * sizeof(*ret));
    return v->rank + add - cut;
}

/* What lies on a GPU may stay there for the step of another ensemble; an answer is on the host. */
static bool may_share(const struct response *to, const struct tensor_output *o,
                      const struct ensemble_value *v)
{
    return v->buf && !response_output_is_given(to, o) &&
           (v->pieces[0].memory != BUF_MEMORY_GPU || to->request->parent);
}

/* Sets the bytes of an output: shared if they have a buffer of their own, else copied. */
static struct err *ensemble_value_fill(struct response *to, struct tensor_output *o,
                                       const struct ensemble_value *v)
{
    if (may_share(to, o, v)) {
        o->buf = buf_ref(v->buf);
        o->data = (void *)(uintptr_t)v->pieces[0].data;
        o->byte_size = v->byte_size;
        o->memory = v->pieces[0].memory;
        o->device = v->pieces[0].device;
        return NULL;
    }
    struct err *e = response_output_memory(to, o, v->byte_size);
    uint64_t at = 0;
    for (uint32_t i = 0; !e && i < v->piece_count; i++) {
        e = response_output_write(o, at, &v->pieces[i]);
        at += v->pieces[i].size;
    }
    return e;
}

static void add_sequence(struct response *r, const struct ensemble_sequence *s)
{
    static const char id[] = "sequence_id", start[] = "sequence_start", end[] = "sequence_end";
    if (s->correlation_string)
        param_add_string(&r->params, &r->arena, id, sizeof(id) - 1, s->correlation_string,
                         strlen(s->correlation_string));
    else
        param_add(&r->params, &r->arena, id, sizeof(id) - 1, PARAM_INT)->i =
            (int64_t)s->correlation_id;
    param_add(&r->params, &r->arena, start, sizeof(start) - 1, PARAM_BOOL)->b =
        s->flags & REQUEST_SEQUENCE_START;
    param_add(&r->params, &r->arena, end, sizeof(end) - 1, PARAM_BOOL)->b =
        s->flags & REQUEST_SEQUENCE_END;
}

static struct err *ensemble_value_add_output(struct response *r, const struct model_io *io,
                                             const struct ensemble_value *v)
{
    const int64_t *dims = io->has_reshape ? io->reshape : io->dims;
    uint32_t rank = io->has_reshape ? io->reshape_rank : io->rank;
    int64_t *shape = arena_alloc(&r->arena, (v->rank + 1) * sizeof(*shape));
    rank = ensemble_value_shape(v, dims, rank, r->request->config->max_batch_size > 0, shape);
    return ensemble_value_fill(r, response_add_output(r, io->name, v->datatype, shape, rank), v);
}

struct err *ensemble_value_answer(const struct ensemble *plan, const bool *wanted,
                                  struct request *request, void *const *values,
                                  struct response **ret)
{
    struct response *r = response_new(request);
    const struct ensemble_sequence *sequence = NULL;
    struct err *e = NULL;
    for (uint32_t i = 0; !e && i < plan->output_count; i++) {
        const struct ensemble_value *v = values[plan->outputs[i]];
        if ((wanted && !wanted[i]) || !v)
            continue;
        e = ensemble_value_add_output(r, &request->config->outputs[i], v);
        /* as in the reference, an empty output does not name a sequence */
        if (v->source && v->byte_size)
            sequence = &v->source->sequence;
    }
    if (e) {
        response_free(r);
        return e;
    }
    if (sequence)
        add_sequence(r, sequence);
    *ret = r;
    return NULL;
}
