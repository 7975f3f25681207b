#include "abi/draft.h"

#include "base/mem.h"
#include "gpu/gpu.h"
#include "infer/request.h"

#include <inttypes.h>
#include <string.h>

#define DRAFT_MAGIC 0x44524146u

/* The most dimensions of a shape, and the most buffers of an input. */
#define MAX_RANK   64u
#define MAX_PIECES 65536u

struct draft *draft_new(const char *model, int64_t version)
{
    struct draft *d = MEM_NEW(struct draft);
    d->magic = DRAFT_MAGIC;
    d->model = mem_strdup(model);
    d->version = version;
    d->id = mem_strdup("");
    arena_init(&d->param_arena, NULL, 0);
    mutex_init(&d->lock, MUTEX_RANK_LEAF);
    return d;
}

static void draft_free_pieces(struct draft_pieces *p)
{
    mem_free(p->items);
    *p = (struct draft_pieces){0};
}

static void free_data(struct draft_input *in)
{
    draft_free_pieces(&in->pieces);
    for (uint32_t i = 0; i < in->policy_count; i++) {
        draft_free_pieces(&in->policies[i].pieces);
        mem_free(in->policies[i].name);
    }
    mem_free(in->policies);
    in->policies = NULL;
    in->policy_count = 0;
}

static void free_input(struct draft_input *in)
{
    free_data(in);
    mem_free(in->name);
    mem_free(in->shape);
}

void draft_free(struct draft *d)
{
    if (!d)
        return;
    draft_remove_inputs(d);
    draft_remove_outputs(d);
    arena_fini(&d->param_arena);
    mem_free(d->inputs);
    mem_free(d->outputs);
    mem_free(d->model);
    mem_free(d->id);
    mem_free(d->correlation_string);
    mutex_fini(&d->lock);
    d->magic = 0;
    mem_free(d);
}

struct draft *draft_of(const void *handle)
{
    struct draft *d = (struct draft *)(uintptr_t)handle;
    return d && d->magic == DRAFT_MAGIC ? d : NULL;
}

bool draft_busy(struct draft *d)
{
    mutex_lock(&d->lock);
    bool busy = d->live != NULL;
    mutex_unlock(&d->lock);
    return busy;
}

void draft_set_text(char **text, const char *value)
{
    mem_free(*text);
    *text = value ? mem_strdup(value) : NULL;
}

/* Makes an error that names the request as the reference does. */
__attribute__((format(printf, 2, 3), cold)) static struct err *draft_error(const struct draft *d,
                                                                           const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct err *e = request_verror(d->id, fmt, args);
    va_end(args);
    return e;
}

static struct draft_input *draft_find_input(const struct draft *d, const char *name)
{
    for (uint32_t i = 0; i < d->input_count; i++)
        if (strcmp(d->inputs[i].name, name) == 0)
            return &d->inputs[i];
    return NULL;
}

static struct err *no_input(const struct draft *d, const char *name)
{
    return draft_error(d, "input '%s' does not exist in request", name);
}

static struct draft_input *append_input(struct draft *d, const char *name)
{
    d->inputs = mem_realloc(d->inputs, (d->input_count + 1u) * sizeof(*d->inputs));
    struct draft_input *in = &d->inputs[d->input_count++];
    *in = (struct draft_input){.name = mem_strdup(name)};
    return in;
}

struct err *draft_add_input(struct draft *d, const char *name, enum datatype datatype,
                            const int64_t *shape, uint64_t rank)
{
    if (draft_find_input(d, name))
        return draft_error(d, "input '%s' already exists in request", name);
    if (d->input_count == REQUEST_MAX_TENSORS || rank > MAX_RANK)
        return draft_error(d, "expected at most %u inputs of at most %u dimensions",
                           REQUEST_MAX_TENSORS, MAX_RANK);
    struct draft_input *in = append_input(d, name);
    in->datatype = datatype;
    in->rank = (uint32_t)rank;
    in->shape = mem_alloc((rank + 1) * sizeof(*in->shape));
    if (rank)
        memcpy(in->shape, shape, rank * sizeof(*shape));
    return NULL;
}

struct err *draft_add_raw_input(struct draft *d, const char *name)
{
    if (d->input_count)
        return draft_error(d, "raw input '%s' can't be added to request with other inputs", name);
    append_input(d, name);
    d->raw = true;
    return NULL;
}

struct err *draft_remove_input(struct draft *d, const char *name)
{
    struct draft_input *in = draft_find_input(d, name);
    if (!in)
        return no_input(d, name);
    free_input(in);
    size_t at = (size_t)(in - d->inputs);
    memmove(in, in + 1, (d->input_count - at - 1) * sizeof(*in));
    d->input_count--;
    d->raw = d->raw && d->input_count;
    return NULL;
}

void draft_remove_inputs(struct draft *d)
{
    for (uint32_t i = 0; i < d->input_count; i++)
        free_input(&d->inputs[i]);
    d->input_count = 0;
    d->raw = false;
}

static struct err *append_piece(const struct draft *d, struct draft_pieces *p,
                                const struct tensor_piece *piece)
{
    if (p->count == MAX_PIECES)
        return draft_error(d, "expected at most %u buffers of an input", MAX_PIECES);
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 1;
        p->items = mem_realloc(p->items, p->cap * sizeof(*p->items));
    }
    p->items[p->count++] = *piece;
    return NULL;
}

static struct draft_pieces *pieces_of(struct draft_input *in, const char *policy)
{
    if (!policy)
        return &in->pieces;
    for (uint32_t i = 0; i < in->policy_count; i++)
        if (strcmp(in->policies[i].name, policy) == 0)
            return &in->policies[i].pieces;
    in->policies = mem_realloc(in->policies, (in->policy_count + 1u) * sizeof(*in->policies));
    struct draft_policy *p = &in->policies[in->policy_count++];
    *p = (struct draft_policy){.name = mem_strdup(policy)};
    return &p->pieces;
}

struct err *draft_add_data(struct draft *d, const char *name, const struct tensor_piece *piece,
                           const char *policy)
{
    struct draft_input *in = draft_find_input(d, name);
    if (!in)
        return no_input(d, name);
    if (piece->memory == BUF_MEMORY_GPU ? !gpu_at(piece->device)
                                        : (unsigned)piece->memory > BUF_MEMORY_GPU)
        return err_new(STATUS_UNSUPPORTED,
                       "input '%s': its buffer is said to lie in the memory of %s %" PRId64
                       ", which is not there",
                       name, piece->memory == BUF_MEMORY_GPU ? "GPU" : "another kind, of id",
                       piece->device);
    return append_piece(d, pieces_of(in, policy), piece);
}

struct err *draft_remove_data(struct draft *d, const char *name)
{
    struct draft_input *in = draft_find_input(d, name);
    if (!in)
        return no_input(d, name);
    free_data(in);
    return NULL;
}

struct err *draft_add_output(struct draft *d, const char *name)
{
    if (d->output_count == REQUEST_MAX_TENSORS)
        return draft_error(d, "expected at most %u requested outputs", REQUEST_MAX_TENSORS);
    for (uint32_t i = 0; i < d->output_count; i++)
        if (strcmp(d->outputs[i], name) == 0)
            return NULL;
    d->outputs = mem_realloc(d->outputs, (d->output_count + 1u) * sizeof(*d->outputs));
    d->outputs[d->output_count++] = mem_strdup(name);
    return NULL;
}

void draft_remove_output(struct draft *d, const char *name)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->output_count; i++) {
        if (strcmp(d->outputs[i], name) == 0)
            mem_free(d->outputs[i]);
        else
            d->outputs[kept++] = d->outputs[i];
    }
    d->output_count = kept;
}

void draft_remove_outputs(struct draft *d)
{
    for (uint32_t i = 0; i < d->output_count; i++)
        mem_free(d->outputs[i]);
    d->output_count = 0;
}

void draft_sent(struct draft *d, struct request *r)
{
    mutex_lock(&d->lock);
    d->live = request_ref(r);
    d->sent = true;
    d->cancelled = false;
    mutex_unlock(&d->lock);
}

void draft_returned(struct draft *d)
{
    mutex_lock(&d->lock);
    struct request *r = d->live;
    d->live = NULL;
    mutex_unlock(&d->lock);
    request_unref(r);
}

struct err *draft_cancel(struct draft *d, struct request **ret)
{
    *ret = NULL;
    mutex_lock(&d->lock);
    bool sent = d->sent;
    if (d->live) {
        d->cancelled = true;
        *ret = request_ref(d->live);
        atomic_store_explicit(&d->live->cancelled, true, memory_order_relaxed);
    }
    mutex_unlock(&d->lock);
    return sent ? NULL
                : err_new(STATUS_INTERNAL, "It is not possible to cancel an inference request "
                                           "before calling TRITONSERVER_InferAsync.");
}

struct err *draft_is_cancelled(struct draft *d, bool *ret)
{
    mutex_lock(&d->lock);
    bool sent = d->sent;
    bool cancelled = d->cancelled;
    mutex_unlock(&d->lock);
    if (!sent)
        return err_new(STATUS_INTERNAL, "It is not possible to query cancellation status before "
                                        "calling TRITONSERVER_InferAsync.");
    *ret = cancelled;
    return NULL;
}
