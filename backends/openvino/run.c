#include "instance.h"

#include <string.h>

#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/binput.h"
#include "../common/boutput.h"

/* An output that was made in the response before the run. */
struct loan {
    bool made;
    bool bound; /* the runtime writes directly into `buffer` */
    bool apart; /* after the run: the result is not in `buffer` */
    void *buffer;
    uint64_t size;
};

/* A run on one instance. */
struct state {
    struct brun *run;
    struct instance *instance;
    struct model *model;
    int64_t rows; /* the number of rows for the model: the batch's, or more if it is padded */
    struct binput *inputs;
    struct boutput *outputs;
    struct loan *loans; /* per output */
};

static TRITONSERVER_Error *openvino_run_list_tensors(struct state *state)
{
    const struct model *model = state->model;
    struct scratch *scratch = &state->run->place->scratch;
    state->inputs = scratch_array(scratch, model->inputs.count, sizeof *state->inputs);
    state->outputs = scratch_array(scratch, model->outputs.count, sizeof *state->outputs);
    state->loans = scratch_array(scratch, model->outputs.count, sizeof *state->loans);
    if (!state->inputs || !state->outputs || !state->loans)
        return berr_no_memory();
    for (size_t i = 0; i < model->inputs.count; i++) {
        state->inputs[i].name = model->inputs.tensors[i].name;
        state->inputs[i].datatype = model->inputs.tensors[i].datatype;
    }
    for (size_t i = 0; i < model->outputs.count; i++) {
        const struct model_tensor *tensor = &model->outputs.tensors[i];
        state->outputs[i] = (struct boutput){
            .name = tensor->name, .datatype = tensor->datatype, .served = tensor->served};
    }
    return NULL;
}

/* Chooses the number of rows for the model; it differs from the batch's if the model takes only
 * one number. */
static TRITONSERVER_Error *choose_rows(struct state *state)
{
    const struct model *model = state->model;
    int64_t rows = state->run->rows;
    state->rows = model->fixed_batch ? model->fixed_batch : rows;
    if (state->rows == rows || model->options.pads)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "expected requests with batch size '%lld', got '%lld'... this error can be "
                    "avoided by setting 'ENABLE_BATCH_PADDING' parameter in model configuration to "
                    "'YES' at a performance cost.",
                    (long long)state->rows, (long long)rows);
}

static TRITONSERVER_Error *wrap(const struct model_tensor *tensor, int64_t *shape, size_t rank,
                                const void *data, ov_tensor_t **ret_tensor)
{
    /* The runtime's functions take a non-const pointer, but only read inputs. */
    union {
        const void *from;
        void *to;
    } bytes = {.from = data};
    ov_shape_t dims = {.rank = (int64_t)rank, .dims = shape};
    return vino_err(ov_tensor_create_from_host_ptr(tensor->element, dims, bytes.to, ret_tensor),
                    "making a tensor");
}

static TRITONSERVER_Error *bind_input(struct state *state, size_t index)
{
    const struct model_tensor *tensor = &state->model->inputs.tensors[index];
    struct binput *input = &state->inputs[index];
    int64_t shape[BRUN_MAX_DIMS];
    const void *data = NULL;
    ov_tensor_t *wrapped = NULL;
    TRITONSERVER_Error *err = binput_data(state->run, input, SCRATCH_ALIGN, state->rows, &data);
    size_t rank = tensor->rank ? binput_shape(state->run, input, state->rows, shape) : 0;
    if (!err)
        err = wrap(tensor, shape, rank, data, &wrapped);
    if (!err)
        err = vino_err(
            ov_infer_request_set_input_tensor_by_index(state->instance->request, index, wrapped),
            "setting tensor data");
    ov_tensor_free(wrapped);
    return err;
}

/* The shape that the model declares for this batch, if no dimension is open. */
static bool openvino_run_promised(const struct state *state, const struct model_tensor *tensor,
                                  int64_t *shape, uint64_t *ret_size)
{
    memcpy(shape, tensor->dims, tensor->rank * sizeof *shape);
    if (state->model->max_batch_size > 0 && tensor->rank)
        shape[0] = state->rows;
    return brun_bytes(tensor->datatype, shape, tensor->rank, ret_size);
}

static bool openvino_run_same_shape(const struct boutput_tensor *result, const int64_t *shape,
                                    size_t rank)
{
    return result->rank == rank && memcmp(result->shape, shape, rank * sizeof *shape) == 0;
}

/* Notes whether a result has the declared shape. If it once had another shape, that stays noted. */
static void openvino_run_learn(const struct state *state, struct model_tensor *tensor,
                               const struct boutput_tensor *result)
{
    int64_t shape[BRUN_MAX_DIMS];
    uint64_t size;
    bool kept = openvino_run_promised(state, tensor, shape, &size) &&
                openvino_run_same_shape(result, shape, tensor->rank);
    int known = atomic_load_explicit(&tensor->promise, memory_order_relaxed);
    int seen = kept ? PROMISE_KEPT : PROMISE_BROKEN;
    if (known != PROMISE_BROKEN && known != seen)
        atomic_store_explicit(&tensor->promise, seen, memory_order_relaxed);
}

static TRITONSERVER_Error *set_output(struct state *state, size_t index, const ov_tensor_t *tensor)
{
    return vino_err(
        ov_infer_request_set_output_tensor_by_index(state->instance->request, index, tensor),
        "setting an output's tensor");
}

/* Lets the runtime write directly into the response, if the declared shape was right in an
 * earlier run. */
static TRITONSERVER_Error *lend_output(struct state *state, size_t index)
{
    const struct model_tensor *tensor = &state->model->outputs.tensors[index];
    struct loan *loan = &state->loans[index];
    int64_t shape[BRUN_MAX_DIMS];
    ov_tensor_t *wrapped = NULL;
    bool kept = atomic_load_explicit(&tensor->promise, memory_order_relaxed) == PROMISE_KEPT;
    if (!kept || state->rows != state->run->rows ||
        !openvino_run_promised(state, tensor, shape, &loan->size) || loan->size == 0)
        return NULL;
    bool scalar = tensor->rank == 0;
    TRITONSERVER_Error *err = boutput_buffer(
        &state->run->items[0], &state->outputs[index], scalar ? tensor->served_dims : shape,
        scalar ? tensor->served_rank : tensor->rank, loan->size, NULL, &loan->buffer);
    loan->made = true;
    if (err || (uintptr_t)loan->buffer % SCRATCH_ALIGN != 0 ||
        binput_meets(state->inputs, state->model->inputs.count, loan->buffer, loan->size))
        return err;
    err = wrap(tensor, shape, tensor->rank, loan->buffer, &wrapped);
    if (!err)
        err = set_output(state, index, wrapped);
    loan->bound = state->instance->borrows[index] = !err;
    ov_tensor_free(wrapped);
    return err;
}

/* For a batch of one request. A response has its outputs in the order in which they are made. So
 * after an output with an open shape, the others cannot be made earlier either. Where outputs are
 * lent a run may be repeated, which a state does not allow. */
static TRITONSERVER_Error *lend_outputs(struct state *state)
{
    bool open = state->run->count != 1 || state->model->has_state;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->model->outputs.count && !err && !open; i++) {
        if (!state->outputs[i].wanted)
            continue;
        err = lend_output(state, i);
        open = !state->loans[i].made;
    }
    return err;
}

/* Gives outputs that are not lent the infer request's own tensors back. */
static TRITONSERVER_Error *reset_outputs(struct state *state)
{
    struct instance *instance = state->instance;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->model->outputs.count && !err; i++) {
        if (!instance->borrows[i] || state->loans[i].bound)
            continue;
        err = set_output(state, i, instance->own[i]);
        instance->borrows[i] = err != NULL;
    }
    return err;
}

/* Runs on the instance's own thread, which has nothing else to do. Handing it to a thread of the
 * runtime and waiting costs three times the CPU of a small model (docs/internals/openvino.md). */
static TRITONSERVER_Error *infer(struct state *state)
{
    TRITONSERVER_Error *err = reset_outputs(state);
    return err ? err
               : vino_err(ov_infer_request_infer(state->instance->request), "running inference");
}

/* Reads the runtime's result of an output.
 * ret_tensor  holds the data; free it with ov_tensor_free */
static TRITONSERVER_Error *openvino_run_read_result(const struct state *state, size_t index,
                                                    struct boutput_tensor *ret_result,
                                                    ov_tensor_t **ret_tensor)
{
    static const char doing[] = "reading an output";
    ov_shape_t shape = {0};
    void *data = NULL;
    TRITONSERVER_Error *err = vino_err(
        ov_infer_request_get_output_tensor_by_index(state->instance->request, index, ret_tensor),
        doing);
    /* The interface has no shape for a tensor without dimensions. */
    if (!err && state->model->outputs.tensors[index].rank > 0)
        err = vino_err(ov_tensor_get_shape(*ret_tensor, &shape), doing);
    if (!err && shape.rank > BRUN_MAX_DIMS)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                       "output '%s' of model '%s' has more than %d dimensions",
                       state->outputs[index].name, state->model->name, BRUN_MAX_DIMS);
    if (!err) {
        ret_result->rank = (size_t)shape.rank;
        if (shape.rank)
            memcpy(ret_result->shape, shape.dims, ret_result->rank * sizeof *shape.dims);
        uint64_t size = 0;
        brun_bytes(state->outputs[index].datatype, ret_result->shape, ret_result->rank, &size);
        if (size) /* an empty tensor may have no memory */
            err = vino_err(ov_tensor_data(*ret_tensor, &data), doing);
    }
    if (shape.dims)
        ov_shape_free(&shape);
    ret_result->data = data;
    return err;
}

/* True if a lent output has its declared shape.
 * copies  it is copied to the response if it is apart */
static bool settle_loan(struct state *state, size_t index, bool copies)
{
    struct loan *loan = &state->loans[index];
    const struct model_tensor *tensor = &state->model->outputs.tensors[index];
    struct boutput_tensor result = {0};
    ov_tensor_t *found = NULL;
    int64_t shape[BRUN_MAX_DIMS];
    uint64_t size;
    TRITONSERVER_Error *err = openvino_run_read_result(state, index, &result, &found);
    bool kept = !err && openvino_run_promised(state, tensor, shape, &size) &&
                openvino_run_same_shape(&result, shape, tensor->rank);
    loan->apart = kept && result.data != loan->buffer;
    if (loan->apart && copies)
        memcpy(loan->buffer, result.data, loan->size);
    berr_drop(err);
    ov_tensor_free(found);
    return kept;
}

/* True if the lent outputs have their declared shapes. Nothing is copied before all are looked at:
 * a copy may lie over an input, which a repeated run needs. */
static bool settle_loans(struct state *state)
{
    bool all = true;
    for (int copies = 0; copies < 2; copies++)
        for (size_t i = 0; i < state->model->outputs.count && all; i++)
            if (copies ? state->loans[i].apart : state->loans[i].made)
                all = settle_loan(state, i, copies);
    return all;
}

/* Replaces the response by a new one without the lent outputs. */
static TRITONSERVER_Error *openvino_run_take_back(struct state *state)
{
    struct brun_item *item = &state->run->items[0];
    TRITONBACKEND_Response *fresh;
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&fresh, item->request);
    if (err)
        return err;
    berr_log(TRITONBACKEND_ResponseDelete(item->response), "failed to delete a response");
    item->response = fresh;
    for (size_t i = 0; i < state->model->outputs.count; i++) {
        if (state->loans[i].made)
            atomic_store_explicit(&state->model->outputs.tensors[i].promise, PROMISE_BROKEN,
                                  memory_order_relaxed);
        state->loans[i] = (struct loan){0};
    }
    return NULL;
}

/* Runs the model. If an output does not have its declared shape, the run is repeated. */
static TRITONSERVER_Error *openvino_run_compute(struct state *state)
{
    bool lent = false;
    for (size_t i = 0; i < state->model->outputs.count; i++)
        lent = lent || state->loans[i].made;
    TRITONSERVER_Error *err = infer(state);
    if (!lent || (!err && settle_loans(state)))
        return err;
    berr_drop(err);
    err = openvino_run_take_back(state);
    return err ? err : infer(state);
}

static TRITONSERVER_Error *openvino_run_write_outputs(struct state *state)
{
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->model->outputs.count && !err; i++) {
        struct model_tensor *tensor = &state->model->outputs.tensors[i];
        struct boutput_tensor result = {0};
        ov_tensor_t *found = NULL;
        if (!state->outputs[i].wanted || state->loans[i].made)
            continue;
        err = openvino_run_read_result(state, i, &result, &found);
        if (!err) {
            openvino_run_learn(state, tensor, &result);
            if (result.rank == 0) {
                result.rank = tensor->served_rank;
                memcpy(result.shape, tensor->served_dims, result.rank * sizeof *result.shape);
            }
            err = boutput_scatter(state->run, &state->outputs[i], state->rows, &result);
        }
        ov_tensor_free(found);
    }
    return err;
}

static TRITONSERVER_Error *openvino_run_work(struct brun *run, void *of)
{
    struct instance *instance = of;
    struct state state = {.run = run, .instance = instance, .model = instance->model};
    TRITONSERVER_Error *err = openvino_run_list_tensors(&state);
    if (!err)
        err = binput_collect(run, state.inputs, state.model->inputs.count);
    if (err || run->batch_size == 0)
        return err;
    err = choose_rows(&state);
    if (!err && state.model->has_state)
        err = instance_new_request(instance);
    for (size_t i = 0; i < state.model->inputs.count && !err; i++)
        err = bind_input(&state, i);
    if (!err)
        err = boutput_select(run, state.outputs, state.model->outputs.count);
    if (err || !brun_any_good(run))
        return err;
    err = lend_outputs(&state);
    run->compute_start_ns = brun_now_ns();
    if (!err)
        err = openvino_run_compute(&state);
    run->compute_end_ns = brun_now_ns();
    return err ? err : openvino_run_write_outputs(&state);
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    brun_requests(&instance->place, requests, count, openvino_run_work, instance);
}
