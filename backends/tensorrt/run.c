#include "record.h"

#include <string.h>

#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/binput.h"
#include "../common/boutput.h"

/* A run on one instance. Lists of inputs and outputs have the order of the engine. */
struct state {
    struct brun *run;
    struct instance *instance;
    const struct engine *engine;
    struct trt_context *context;
    const struct graph *graph; /* a recording that stands for the execution; NULL = there is none */
    struct binput *inputs;
    struct profile_given *given; /* one for each input */
    struct boutput *outputs;
    void **results; /* one for each output; NULL = its shape is not known before */
    int64_t rows;   /* of the execution: those of the batch, or more */
};

static TRITONSERVER_Error *tensorrt_run_list_tensors(struct state *state)
{
    const struct engine *engine = state->engine;
    struct scratch *scratch = &state->run->place->scratch;
    size_t input = 0, output = 0, output_count = engine->count - engine->input_count;
    state->inputs = scratch_array(scratch, engine->input_count, sizeof *state->inputs);
    state->given = scratch_array(scratch, engine->input_count, sizeof *state->given);
    state->outputs = scratch_array(scratch, output_count, sizeof *state->outputs);
    state->results = scratch_array(scratch, output_count, sizeof(void *));
    if (!state->inputs || !state->given || !state->outputs || !state->results)
        return berr_no_memory();
    for (size_t i = 0; i < engine->count; i++) {
        const struct trt_tensor *tensor = &engine->tensors[i];
        if (tensor->is_input)
            state->inputs[input++] =
                (struct binput){.name = tensor->name,
                                .datatype = tensor->datatype,
                                .unrowed = tensor->is_shape,
                                .vector = {tensor->vector_dim, tensor->vector}};
        else
            state->outputs[output++] =
                (struct boutput){.name = tensor->name,
                                 .datatype = tensor->datatype,
                                 .served = engine->roles[i].served,
                                 .is_state = engine->roles[i].is_state,
                                 .vector = {tensor->vector_dim, tensor->vector}};
    }
    return NULL;
}

/* Requests of a batch have the same values in a shape tensor: those of the first that is in it. */
static TRITONSERVER_Error *read_shape_tensor(struct state *state, const struct binput *input,
                                             struct profile_given *given)
{
    struct brun *run = state->run;
    const void *data = NULL;
    uint64_t size = 0;
    uint32_t first = 0;
    while (!run->items[first].in_batch)
        first++;
    TRITONSERVER_Error *err = binput_bytes(run, input, first, &data, &size);
    if (!err)
        err = profile_read_values(given, input->datatype,
                                  run->place->max_batch_size > 0 ? run->rows : 0, data, size);
    given->dims[0] = (int64_t)given->count;
    return err;
}

/* What this execution has of an input, for the choice of a profile. */
static TRITONSERVER_Error *tensorrt_run_read_input(struct state *state,
                                                   const struct trt_tensor *tensor,
                                                   const struct binput *input,
                                                   struct profile_given *given)
{
    int64_t shape[BRUN_MAX_DIMS];
    size_t rank = binput_shape(state->run, input, state->run->rows, shape);
    given->name = tensor->name;
    given->rank = rank;
    /* A configuration has no scalars: they are tensors of one element there. */
    if (tensor->rank == 0)
        given->rank = 0;
    if (given->rank > PROFILE_MOST_DIMS)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' has %zu dimensions, TensorRT has at most %d", tensor->name,
                        rank, PROFILE_MOST_DIMS);
    if (given->rank)
        memcpy(given->dims, shape, given->rank * sizeof *shape);
    return tensor->is_shape ? read_shape_tensor(state, input, given) : NULL;
}

static TRITONSERVER_Error *choose_context(struct state *state)
{
    struct instance *instance = state->instance;
    size_t input = 0, at = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->engine->count && !err; i++) {
        if (!state->engine->tensors[i].is_input)
            continue;
        err = tensorrt_run_read_input(state, &state->engine->tensors[i], &state->inputs[input],
                                      &state->given[input]);
        input++;
    }
    if (!err)
        err = profile_choose(instance->profiles, instance->profile_count, state->given,
                             state->engine->input_count, instance->name, &at);
    if (err)
        return err;
    state->context = instance->contexts[at];
    state->rows = state->run->rows;
    if (instance->recorded)
        state->graph = graph_choose(instance->recorded[at].graphs, instance->recorded[at].count,
                                    state->given, state->engine->input_count);
    if (state->graph && state->graph->rows)
        state->rows = state->graph->rows;
    return NULL;
}

/* The contents of an input on the GPU: where they lie, or a copy that is queued. */
static TRITONSERVER_Error *tensorrt_run_put_on_gpu(struct state *state, size_t tensor,
                                                   const struct binput *input,
                                                   const void **ret_data)
{
    uint64_t size = 0;
    void *room = NULL;
    TRITONSERVER_Error *err = binput_gpu_size(state->run, input, state->run->rows, &size, ret_data);
    if (err || (*ret_data && (uintptr_t)*ret_data % TRT_ALIGN == 0))
        return err;
    err = instance_room(state->instance, tensor, size, &room);
    if (err)
        return err;
    binput_gpu_copy(state->run, input, room, size);
    *ret_data = room;
    return NULL;
}

static TRITONSERVER_Error *put_shape_tensor(struct state *state, const struct profile_given *given,
                                            TRITONSERVER_DataType datatype, const void **ret_data)
{
    void *to = scratch_take(&state->run->place->scratch,
                            (given->count + 1) * TRITONSERVER_DataTypeByteSize(datatype));
    if (!to)
        return berr_no_memory();
    profile_write_values(given, datatype, to);
    *ret_data = to;
    return NULL;
}

static TRITONSERVER_Error *tensorrt_run_give_inputs(struct state *state)
{
    size_t input = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->engine->count && !err; i++) {
        const struct trt_tensor *tensor = &state->engine->tensors[i];
        const void *data = NULL;
        if (!tensor->is_input)
            continue;
        const struct profile_given *given = &state->given[input];
        err = tensor->is_shape ? put_shape_tensor(state, given, tensor->datatype, &data)
                               : tensorrt_run_put_on_gpu(state, i, &state->inputs[input], &data);
        if (!err)
            err = trt_set_input(state->context, i, given->dims, given->rank, data);
        input++;
    }
    return err ? err : trt_infer_shapes(state->context);
}

static void *grow_room(void *of, size_t tensor, uint64_t size)
{
    void *room = NULL;
    TRITONSERVER_Error *err = instance_room(of, tensor, size, &room);
    berr_log(err, "failed to get memory for an output");
    return room;
}

/* Memory for an output: of the host for shape tensors, else of the GPU. TensorRT asks for that of
 * an output whose shape only the execution tells. */
static TRITONSERVER_Error *prepare_output(struct state *state, size_t tensor, void **ret_result)
{
    const struct trt_tensor *of = &state->engine->tensors[tensor];
    int64_t shape[PROFILE_MOST_DIMS];
    uint64_t size = 0;
    TRITONSERVER_Error *err = NULL;
    size_t rank = trt_output_shape(state->context, tensor, shape);
    if (!engine_bytes(of, shape, rank, &size))
        return of->is_shape ? berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                                       "shape tensor '%s' has a length that only the execution "
                                       "tells, which is not served",
                                       of->name)
                            : trt_ask_output(state->context, tensor, grow_room, state->instance);
    if (of->is_shape)
        *ret_result = scratch_take(&state->run->place->scratch, size + 1);
    else
        err = instance_room(state->instance, tensor, size, ret_result);
    if (!err && !*ret_result)
        err = berr_no_memory();
    return err ? err : trt_set_output(state->context, tensor, *ret_result);
}

/* All of them, also those that nobody wants: TensorRT writes each. */
static TRITONSERVER_Error *tensorrt_run_prepare_outputs(struct state *state)
{
    size_t output = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->engine->count && !err; i++)
        if (!state->engine->tensors[i].is_input)
            err = prepare_output(state, i, &state->results[output++]);
    return err;
}

/* Inputs go to where the recording has them, and outputs come from there. */
static TRITONSERVER_Error *prepare_graph(struct state *state)
{
    size_t input = 0, output = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->engine->count && !err; i++) {
        const struct trt_tensor *of = &state->engine->tensors[i];
        if (!of->is_input)
            state->results[output++] =
                of->is_shape ? state->graph->tensors[i].host : state->instance->rooms[i].fixed;
        else if (!of->is_shape)
            err = record_input(state->instance, state->run, i, &state->inputs[input],
                               &state->given[input], &state->graph->most[input]);
        input += of->is_input;
    }
    return err;
}

static size_t result_shape(const struct state *state, size_t tensor, int64_t *ret_shape)
{
    if (!state->graph)
        return trt_found_shape(state->context, tensor, ret_shape);
    const struct graph_tensor *known = &state->graph->tensors[tensor];
    if (known->rank)
        memcpy(ret_shape, known->dims, known->rank * sizeof *ret_shape);
    return known->rank;
}

/* Each row gets the values of a shape tensor, but the one for the batch, as in the reference. */
static TRITONSERVER_Error *write_shape_tensor(struct state *state, const struct boutput *output,
                                              const void *result, size_t count)
{
    struct brun *run = state->run;
    const uint32_t element = TRITONSERVER_DataTypeByteSize(output->datatype);
    const bool batches = run->place->max_batch_size > 0;
    struct profile_given found = {.name = output->name};
    struct boutput_tensor tensor = {.rank = batches ? 2 : 1, .shape = {state->rows}};
    TRITONSERVER_Error *err =
        profile_read_values(&found, output->datatype, 0, result, count * element);
    if (err)
        return err;
    if (batches && (found.count == 0 || found.values[0] != state->rows))
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "failed to retrieve the output shape values from binding '%s'",
                        output->name);
    const size_t rows = batches ? (size_t)state->rows : 1, kept = found.count - batches;
    char *all = scratch_take(&run->place->scratch, (rows * kept + 1) * element);
    if (!all)
        return berr_no_memory();
    for (size_t row = 0; row < rows; row++)
        memcpy(all + row * kept * element, (const char *)result + batches * element,
               kept * element);
    tensor.shape[batches] = (int64_t)kept;
    tensor.data = all;
    return boutput_scatter(run, output, state->rows, &tensor);
}

static TRITONSERVER_Error *tensorrt_run_write_output(struct state *state, size_t index,
                                                     const struct boutput *output, void *result)
{
    struct boutput_tensor tensor = {.on_gpu = true};
    int64_t shape[PROFILE_MOST_DIMS];
    tensor.rank = result_shape(state, index, shape);
    if (state->engine->tensors[index].is_shape)
        return write_shape_tensor(state, output, result, tensor.rank ? (size_t)shape[0] : 1);
    if (tensor.rank)
        memcpy(tensor.shape, shape, tensor.rank * sizeof *shape);
    else /* the protocol has no scalars */
        tensor.shape[tensor.rank++] = 1;
    tensor.data = result ? result : state->instance->rooms[index].memory;
    return boutput_scatter(state->run, output, state->rows, &tensor);
}

static TRITONSERVER_Error *tensorrt_run_write_outputs(struct state *state)
{
    size_t output = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < state->engine->count && !err; i++) {
        if (state->engine->tensors[i].is_input)
            continue;
        const struct boutput *of = &state->outputs[output];
        if (of->wanted || of->is_state)
            err = tensorrt_run_write_output(state, i, of, state->results[output]);
        output++;
    }
    return err;
}

/* In the context of the GPU. */
static TRITONSERVER_Error *execute(struct state *state)
{
    struct brun *run = state->run;
    struct bcuda *cuda = state->instance->cuda;
    void *stream = NULL;
    TRITONSERVER_Error *err = bcuda_stream(cuda, &stream);
    if (!err)
        err = choose_context(state);
    if (!err)
        err = state->graph ? prepare_graph(state) : tensorrt_run_give_inputs(state);
    if (!err && !state->graph)
        err = tensorrt_run_prepare_outputs(state);
    if (err || !brun_any_good(run))
        return err;
    run->compute_start_ns = brun_now_ns();
    err = state->graph ? bcuda_replay(cuda, state->graph->recording)
                       : trt_run(state->context, stream);
    if (!err)
        err = bcuda_wait(cuda);
    run->compute_end_ns = brun_now_ns();
    return err ? err : tensorrt_run_write_outputs(state);
}

static TRITONSERVER_Error *tensorrt_run_work(struct brun *run, void *of)
{
    struct instance *instance = of;
    struct state state = {.run = run, .instance = instance, .engine = instance->engine};
    const size_t output_count = state.engine->count - state.engine->input_count;
    TRITONSERVER_Error *err = tensorrt_run_list_tensors(&state);
    if (!err)
        err = binput_collect(run, state.inputs, state.engine->input_count);
    if (err || run->batch_size == 0)
        return err;
    err = boutput_select(run, state.outputs, output_count);
    if (!err)
        err = bcuda_enter(instance->cuda);
    if (err)
        return err;
    err = execute(&state);
    bcuda_leave();
    return err;
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    brun_requests(&instance->place, requests, count, tensorrt_run_work, instance);
}
