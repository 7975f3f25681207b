#include "instance.h"

#include <string.h>

#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/binput.h"
#include "../common/boutput.h"
#include "batch_parts.h"
#include "texts.h"

/* A run on one instance. */
struct state {
    struct brun *run;
    const struct model *model;
    const struct session *session;
    struct keep *keep;
    struct binput *inputs;
    struct boutput *outputs;
    TF_Tensor **given; /* per input */
    TF_Tensor **made;  /* per fetched output, like the next two */
    TF_Output *fetched;
    size_t *fetched_index; /* index of the output in the model */
    size_t fetched_count;
};

static TRITONSERVER_Error *tensorflow_run_list_tensors(struct state *state)
{
    const struct model *model = state->model;
    struct scratch *scratch = &state->run->place->scratch;
    size_t inputs = model->inputs.count, outputs = model->outputs.count;
    state->inputs = scratch_array(scratch, inputs, sizeof *state->inputs);
    state->outputs = scratch_array(scratch, outputs, sizeof *state->outputs);
    state->given = scratch_array(scratch, inputs, sizeof(TF_Tensor *));
    state->made = scratch_array(scratch, outputs, sizeof(TF_Tensor *));
    state->fetched = scratch_array(scratch, outputs, sizeof *state->fetched);
    state->fetched_index = scratch_array(scratch, outputs, sizeof *state->fetched_index);
    if (!state->inputs || !state->outputs || !state->given || !state->made || !state->fetched ||
        !state->fetched_index)
        return berr_no_memory();
    for (size_t i = 0; i < inputs; i++) {
        const struct model_tensor *tensor = &model->inputs.tensors[i];
        state->inputs[i] = (struct binput){
            .name = tensor->name, .datatype = tensor->datatype, .ragged = tensor->ragged};
    }
    for (size_t i = 0; i < outputs; i++) {
        const struct model_tensor *tensor = &model->outputs.tensors[i];
        state->outputs[i] = (struct boutput){.name = tensor->name,
                                             .datatype = tensor->datatype,
                                             .served = tensor->served,
                                             .is_state = tensor->is_state};
    }
    return NULL;
}

/* The protocol represents a scalar as one element.
 * returns  the number of dimensions that the model's input has in this run */
static size_t input_rank(const struct state *state, size_t index, size_t rank, const int64_t *shape)
{
    const struct model_tensor *tensor = &state->model->inputs.tensors[index];
    bool scalar = tensor->has_shape && tensor->rank == 0 && rank == 1 && shape[0] == 1;
    return scalar ? 0 : rank;
}

/* memory: of the run's keep, which has it back when TensorFlow no longer needs it */
static TRITONSERVER_Error *give_kept(struct state *state, size_t index, const int64_t *shape,
                                     size_t rank, void *memory, uint64_t size)
{
    TF_DataType type = runtime_type(state->model->inputs.tensors[index].datatype);
    state->given[index] =
        TF_NewTensor(type, shape, (int)rank, memory, size, keep_give, state->keep);
    return state->given[index] ? NULL : berr_no_memory();
}

/* Makes a copy, because TensorFlow may keep an input in a variable for longer than the request's
 * memory exists. */
static TRITONSERVER_Error *tensorflow_run_give_input(struct state *state, size_t index)
{
    const struct binput *input = &state->inputs[index];
    int64_t shape[BRUN_MAX_DIMS];
    uint64_t size;
    if (input->datatype == TRITONSERVER_TYPE_BYTES)
        return texts_give(state->run, input, &state->given[index]);
    size_t rank = binput_shape(state->run, input, state->run->rows, shape);
    TRITONSERVER_Error *err = binput_size(state->run, input, state->run->rows, &size);
    if (err)
        return err;
    void *memory = keep_take(state->keep, size);
    if (!memory)
        return berr_no_memory();
    binput_copy(state->run, input, memory, size);
    rank = input_rank(state, index, rank, shape);
    return give_kept(state, index, shape, rank, memory, size);
}

static TRITONSERVER_Error *compute_input(struct state *state, size_t index)
{
    const struct model_tensor *tensor = &state->model->inputs.tensors[index];
    const struct binput *source = &state->inputs[tensor->told_by];
    int64_t shape[2];
    size_t rank;
    uint64_t size;
    TRITONSERVER_Error *err =
        bcomputed_shape(state->run, source, tensor->computed, shape, &rank, &size);
    if (err)
        return err;
    void *memory = keep_take(state->keep, size);
    if (!memory)
        return berr_no_memory();
    bcomputed_fill(state->run, source, tensor->computed, tensor->datatype, memory,
                   size / sizeof(int32_t));
    return give_kept(state, index, shape, rank, memory, size);
}

static void choose_outputs(struct state *state)
{
    for (size_t i = 0; i < state->model->outputs.count; i++) {
        if (!state->outputs[i].wanted && !state->outputs[i].is_state)
            continue;
        state->fetched[state->fetched_count] = state->session->outputs[i];
        state->fetched_index[state->fetched_count++] = i;
    }
}

static TRITONSERVER_Error *tensorflow_run_compute(struct state *state)
{
    TF_Status *status = TF_NewStatus();
    TRITONSERVER_Error *err = NULL;
    TF_SessionRun(state->session->handle, NULL, state->session->inputs, state->given,
                  (int)state->model->inputs.count, state->fetched, state->made,
                  (int)state->fetched_count, NULL, 0, NULL, status);
    if (TF_GetCode(status) != TF_OK)
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, TF_Message(status));
    TF_DeleteStatus(status);
    return err;
}

static TRITONSERVER_Error *tensorflow_run_read_result(const struct boutput *output,
                                                      const TF_Tensor *tensor,
                                                      struct boutput_tensor *ret_result)
{
    int rank = TF_NumDims(tensor);
    TRITONSERVER_DataType datatype = runtime_datatype(TF_TensorType(tensor));
    if (rank > BRUN_MAX_DIMS)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "output '%s' has more than %d dimensions",
                        output->name, BRUN_MAX_DIMS);
    if (datatype != output->datatype)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "output '%s' came with type %d of TensorFlow, not with TYPE_%s",
                        output->name, (int)TF_TensorType(tensor),
                        TRITONSERVER_DataTypeString(output->datatype));
    ret_result->rank = (size_t)rank;
    for (int i = 0; i < rank; i++)
        ret_result->shape[i] = TF_Dim(tensor, i);
    ret_result->data = TF_TensorData(tensor);
    return NULL;
}

/* Gives a scalar the dims of the configuration, all of which are 1. */
static void shape_scalar(const struct model_tensor *tensor, struct boutput_tensor *result)
{
    bool ones = tensor->served;
    for (size_t i = 0; i < tensor->served_rank; i++)
        ones = ones && tensor->served_dims[i] == 1;
    if (result->rank > 0 || !ones)
        return;
    result->rank = tensor->served_rank;
    memcpy(result->shape, tensor->served_dims, result->rank * sizeof *result->shape);
}

static TRITONSERVER_Error *tensorflow_run_write_outputs(const struct state *state)
{
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->fetched_count && !err; i++) {
        size_t index = state->fetched_index[i];
        const struct boutput *output = &state->outputs[index];
        struct boutput_tensor result = {0};
        err = tensorflow_run_read_result(output, state->made[i], &result);
        if (err)
            break;
        if (state->model->max_batch_size == 0)
            shape_scalar(&state->model->outputs.tensors[index], &result);
        const struct model_tensor *tensor = &state->model->outputs.tensors[index];
        if (tensor->is_divided)
            err = batch_parts_divide(state->run, tensor, output, &state->inputs[tensor->divided_by],
                                     &result);
        else if (output->datatype == TRITONSERVER_TYPE_BYTES)
            err = texts_scatter(state->run, output, &result);
        else
            err = boutput_scatter(state->run, output, state->run->rows, &result);
    }
    return err;
}

static TRITONSERVER_Error *tensorflow_run_batch(struct state *state)
{
    struct brun *run = state->run;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->model->inputs.count && !err; i++)
        err = i < state->model->given_count ? tensorflow_run_give_input(state, i)
                                            : compute_input(state, i);
    if (!err)
        err = boutput_select(run, state->outputs, state->model->outputs.count);
    if (err || !brun_any_good(run))
        return err;
    choose_outputs(state);
    if (state->fetched_count == 0)
        return NULL;
    run->compute_start_ns = brun_now_ns();
    err = tensorflow_run_compute(state);
    run->compute_end_ns = brun_now_ns();
    return err ? err : tensorflow_run_write_outputs(state);
}

static TRITONSERVER_Error *tensorflow_run_work(struct brun *run, void *of)
{
    const struct instance *instance = of;
    struct state state = {
        .run = run, .model = instance->model, .session = instance->session, .keep = instance->keep};
    TRITONSERVER_Error *err = tensorflow_run_list_tensors(&state);
    if (err)
        return err;
    err = binput_collect(run, state.inputs, state.model->given_count);
    if (!err && run->batch_size > 0)
        err = tensorflow_run_batch(&state);
    for (size_t i = 0; i < state.model->inputs.count; i++)
        if (state.given[i])
            TF_DeleteTensor(state.given[i]);
    for (size_t i = 0; i < state.fetched_count; i++)
        if (state.made[i])
            TF_DeleteTensor(state.made[i]);
    return err;
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    brun_requests(&instance->place, requests, count, tensorflow_run_work, instance);
}
