#include "instance.h"

#include <stdio.h>
#include <string.h>

#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/binput.h"
#include "../common/boutput.h"
#include "texts.h"

enum { MADE_UP_NAME = 32 };

/* A run on one instance. */
struct state {
    struct brun *run;
    struct instance *instance;
    struct model *model;
    struct binput *inputs;
    struct boutput *outputs;
    int64_t rows; /* of the model's tensors: the batch's, or more if it is padded */
};

static TRITONSERVER_Error *pytorch_run_list_tensors(struct state *state)
{
    const struct model *model = state->model;
    struct scratch *scratch = &state->run->place->scratch;
    state->inputs = scratch_array(scratch, model->input_count, sizeof *state->inputs);
    state->outputs = scratch_array(scratch, model->output_count, sizeof *state->outputs);
    if (!state->inputs || !state->outputs)
        return berr_no_memory();
    for (size_t i = 0; i < model->input_count; i++) {
        state->inputs[i].name = model->inputs[i].name;
        state->inputs[i].datatype = model->inputs[i].datatype;
    }
    for (size_t i = 0; i < model->output_count; i++)
        state->outputs[i] = (struct boutput){.name = model->outputs[i].name,
                                             .datatype = model->outputs[i].datatype,
                                             .served = model->outputs[i].served,
                                             .is_state = model->outputs[i].is_state};
    return NULL;
}

/* The contents of an input on the instance's GPU: where they lie, or a copy that is queued. */
static TRITONSERVER_Error *put_on_gpu(struct state *state, const struct binput *input,
                                      const void **ret_data)
{
    uint64_t size = 0;
    void *room = NULL;
    TRITONSERVER_Error *err = binput_gpu_size(state->run, input, state->rows, &size, ret_data);
    if (err || *ret_data)
        return err;
    err = libtorch_call_room(state->instance->call, size, &room);
    if (err)
        return err;
    binput_gpu_copy(state->run, input, room, size);
    *ret_data = room;
    return NULL;
}

static TRITONSERVER_Error *give_number(struct state *state, size_t index)
{
    const struct model_input *of = &state->model->inputs[index];
    const void *value;
    uint64_t size;
    TRITONSERVER_Error *err = binput_value(state->run, &state->inputs[index], &value, &size);
    return err ? err
               : libtorch_call_tensor(state->instance->call, of->argument, of->name, of->datatype,
                                      NULL, 0, false, value);
}

static TRITONSERVER_Error *pytorch_run_give_input(struct state *state, size_t index)
{
    const struct model_input *of = &state->model->inputs[index];
    struct binput *input = &state->inputs[index];
    int64_t shape[BRUN_MAX_DIMS];
    const void *data = NULL;
    if (of->datatype == TRITONSERVER_TYPE_BYTES)
        return texts_give(state->run, input, state->instance->call, of->argument);
    if (state->model->arguments[of->argument].kind == LIBTORCH_NUMBER)
        return give_number(state, index);
    bool on_gpu = state->instance->cuda != NULL;
    TRITONSERVER_Error *err =
        on_gpu ? put_on_gpu(state, input, &data)
               : binput_data(state->run, input, TRITONSERVER_DataTypeByteSize(of->datatype),
                             state->rows, &data);
    size_t rank = binput_shape(state->run, input, state->rows, shape);
    return err ? err
               : libtorch_call_tensor(state->instance->call, of->argument, of->name, of->datatype,
                                      shape, rank, on_gpu, data);
}

/* The index of a configured result among the results of this call; their number if it is not
 * among them. A key may itself be of the form NAME__INDEX. */
static size_t find_result(const struct state *state, const struct model_output *output)
{
    const struct libtorch_call *call = state->instance->call;
    size_t count = libtorch_call_count(call);
    for (size_t i = 0; i < count; i++) {
        const char *key = libtorch_call_key(call, i);
        if (key && strcmp(key, output->name) == 0)
            return i;
    }
    return output->index >= 0 && (size_t)output->index < count ? (size_t)output->index : count;
}

static TRITONSERVER_Error *no_such_result(const struct libtorch_call *call, const char *name)
{
    size_t count = libtorch_call_count(call);
    struct berr_names keys = {0};
    for (size_t i = 0; i < count; i++)
        if (libtorch_call_key(call, i))
            berr_names_add(&keys, libtorch_call_key(call, i));
    if (keys.used)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "The output '%s' is none of the %zu results that the model gives back: %s",
                        name, count, keys.text);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "The output %s in the model configuration refers to an output index which "
                    "doesn't exist. This model has %zu outputs",
                    name, count);
}

static TRITONSERVER_Error *check_result(const struct boutput *output,
                                        const struct libtorch_result *result)
{
    if (result->kind == LIBTORCH_OTHER)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "output '%s' must be of type Tensor or List[str].", output->name);
    if (result->datatype == TRITONSERVER_TYPE_INVALID)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "output '%s' is a tensor of a type that the protocol does not have",
                        output->name);
    if (result->rank > BRUN_MAX_DIMS)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "output '%s' has more than %d dimensions",
                        output->name, BRUN_MAX_DIMS);
    if (result->datatype == output->datatype)
        return NULL;
    return berr_new(
        TRITONSERVER_ERROR_INVALID_ARG,
        "configuration expects datatype TYPE_%s for output '%s', model provides TYPE_%s",
        TRITONSERVER_DataTypeString(output->datatype), output->name,
        TRITONSERVER_DataTypeString(result->datatype));
}

static TRITONSERVER_Error *write_result(const struct state *state, const struct boutput *output,
                                        size_t index, const struct libtorch_result *result)
{
    struct boutput_tensor tensor = {
        .rank = result->rank, .data = result->data, .on_gpu = result->on_gpu};
    TRITONSERVER_Error *err = check_result(output, result);
    if (err)
        return err;
    if (result->kind == LIBTORCH_STRINGS)
        return texts_scatter(state->run, output, state->instance->call, index, result->count);
    if (tensor.rank)
        memcpy(tensor.shape, result->shape, tensor.rank * sizeof *tensor.shape);
    /* The protocol represents a scalar as one element. */
    else if (state->model->max_batch_size == 0)
        tensor.shape[tensor.rank++] = 1;
    return boutput_scatter(state->run, output, state->rows, &tensor);
}

static TRITONSERVER_Error *pytorch_run_write_outputs(const struct state *state)
{
    struct libtorch_call *call = state->instance->call;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->model->output_count && !err; i++) {
        const struct boutput *output = &state->outputs[i];
        struct libtorch_result result;
        size_t index = find_result(state, &state->model->outputs[i]);
        if (!output->wanted && !output->is_state)
            continue;
        if (index == libtorch_call_count(call))
            return no_such_result(call, output->name);
        err = libtorch_call_result(call, index, &result);
        if (!err)
            err = write_result(state, output, index, &result);
    }
    return err;
}

/* For a configuration without outputs: writes all results, named by their key or
 * OUTPUT__<index>, with their own types. */
static TRITONSERVER_Error *pytorch_run_write_all(const struct state *state)
{
    struct brun *run = state->run;
    struct libtorch_call *call = state->instance->call;
    bool *everybody = scratch_array(&run->place->scratch, run->count, sizeof *everybody);
    TRITONSERVER_Error *err = everybody ? libtorch_call_check_names(call) : berr_no_memory();
    if (everybody)
        memset(everybody, true, run->count);
    for (size_t i = 0; i < libtorch_call_count(call) && !err; i++) {
        char name[MADE_UP_NAME];
        struct libtorch_result result;
        snprintf(name, sizeof name, "OUTPUT__%zu", i);
        err = libtorch_call_result(call, i, &result);
        if (err)
            break;
        struct boutput output = {.name = result.key ? result.key : name,
                                 .datatype = result.datatype,
                                 .served = true,
                                 .wanted_by = everybody,
                                 .wanted = true};
        err = write_result(state, &output, i, &result);
    }
    return err;
}

/* Gives the inputs, with state->rows rows, and runs the model. */
static TRITONSERVER_Error *call_model(struct state *state)
{
    struct brun *run = state->run;
    struct libtorch_call *call = state->instance->call;
    struct bcuda *cuda = state->instance->cuda;
    void *stream = NULL;
    TRITONSERVER_Error *err = cuda ? bcuda_stream(cuda, &stream) : NULL;
    if (!err)
        err = libtorch_call_begin(call, state->model->argument_count, stream);
    for (size_t i = 0; i < state->model->input_count && !err; i++)
        err = pytorch_run_give_input(state, i);
    if (err || !brun_any_good(run))
        return err;
    run->compute_start_ns = brun_now_ns();
    err = libtorch_call_run(call, &state->model->options.mode);
    if (!err && cuda)
        err = bcuda_wait(cuda);
    run->compute_end_ns = brun_now_ns();
    return err;
}

/* A package may take no fewer than two rows, which PyTorch makes of an open dimension, or one
 * number of rows. What it takes is found out by trying, and then remembered. */
static TRITONSERVER_Error *call_package(struct state *state)
{
    struct model *model = state->model;
    const int64_t rows = state->run->rows, more[] = {2, model->max_batch_size};
    int64_t least = atomic_load_explicit(&model->least_rows, memory_order_relaxed);
    state->rows = rows > least ? rows : least;
    TRITONSERVER_Error *why = call_model(state);
    bool done = !why;
    for (size_t i = 0; !done && !least && i < sizeof more / sizeof *more; i++) {
        if (more[i] <= state->rows || more[i] > model->max_batch_size)
            continue;
        state->rows = more[i];
        TRITONSERVER_Error *err = call_model(state);
        done = !err;
        berr_drop(err);
    }
    if (!done)
        return why;
    if (!least && brun_any_good(state->run) && (why || rows == 1))
        atomic_store_explicit(&model->least_rows, state->rows, memory_order_relaxed);
    berr_drop(why);
    return NULL;
}

static TRITONSERVER_Error *pytorch_run_compute(struct state *state)
{
    struct brun *run = state->run;
    state->rows = run->rows;
    TRITONSERVER_Error *err = boutput_select(run, state->outputs, state->model->output_count);
    if (!err)
        err = state->model->is_package ? call_package(state) : call_model(state);
    if (err || !brun_any_good(run))
        return err;
    err = pytorch_run_write_outputs(state);
    return err || !state->model->serves_all ? err : pytorch_run_write_all(state);
}

static TRITONSERVER_Error *pytorch_run_work(struct brun *run, void *of)
{
    struct instance *instance = of;
    struct state state = {.run = run, .instance = instance, .model = instance->model};
    TRITONSERVER_Error *err = pytorch_run_list_tensors(&state);
    if (!err)
        err = binput_collect(run, state.inputs, state.model->input_count);
    if (err || run->batch_size == 0)
        return err;
    err = pytorch_run_compute(&state);
    /* What is queued on a GPU may still read results: PyTorch gives their memory to nobody but
     * later work on this stream. */
    libtorch_call_end(instance->call);
    if (instance->cuda && instance->model->options.empties_cache)
        libtorch_empty_cache();
    return err;
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    options_settle();
    brun_requests(&instance->place, requests, count, pytorch_run_work, instance);
}
