#include "record.h"

#include <stdio.h>
#include <stdlib.h>

#include "../common/berr.h"

/* A step towards a recording. */
typedef TRITONSERVER_Error *step_fn(struct instance *instance, size_t profile, struct graph *graph);

static void record_tell(const struct instance *instance, size_t profile, const struct graph *graph,
                        TRITONSERVER_Error *err)
{
    char what[256];
    snprintf(what, sizeof what, "'%s' has no CUDA graph for batch size %lld in profile %s",
             instance->name, (long long)graph->rows, instance->profiles[profile].name);
    berr_log(err, what);
}

static void drop(struct instance *instance, struct graph *graph)
{
    bcuda_forget(instance->cuda, graph->recording);
    graph_fini(graph, instance->engine->count);
}

static void add_graph(struct instance *instance, size_t profile, const struct graph_spec *spec)
{
    struct graph_set *set = &instance->recorded[profile];
    struct graph *graph = &set->graphs[set->count];
    TRITONSERVER_Error *err =
        graph_init(spec, &instance->profiles[profile], instance->engine->tensors,
                   instance->engine->count, instance->name, graph);
    bool known = false;
    if (err)
        record_tell(instance, profile, &(struct graph){.rows = spec->rows}, err);
    for (size_t i = 0; i < set->count && !err; i++)
        known = known || graph_same(&set->graphs[i], graph, instance->engine->input_count);
    if (known)
        drop(instance, graph);
    set->count += !err && !known;
}

static TRITONSERVER_Error *list_graphs(struct instance *instance)
{
    struct graph_spec *specs = NULL;
    size_t count = 0;
    TRITONSERVER_Error *err =
        graph_list(instance->model->config, instance->model->max_batch_size, &specs, &count);
    if (err)
        return err;
    instance->recorded = calloc(instance->profile_count + 1, sizeof *instance->recorded);
    if (!instance->recorded)
        err = berr_no_memory();
    for (size_t p = 0; p < instance->profile_count && !err; p++) {
        instance->recorded[p].graphs = calloc(count + 1, sizeof(struct graph));
        if (!instance->recorded[p].graphs)
            err = berr_no_memory();
        for (size_t i = 0; i < count && !err; i++)
            add_graph(instance, p, &specs[i]);
    }
    free(specs);
    return err;
}

/* Keeps those for which a step succeeds. */
static void each_graph(struct instance *instance, step_fn *step)
{
    for (size_t p = 0; p < instance->profile_count; p++) {
        struct graph_set *set = &instance->recorded[p];
        size_t kept = 0;
        for (size_t i = 0; i < set->count; i++) {
            TRITONSERVER_Error *err = step(instance, p, &set->graphs[i]);
            if (err) {
                record_tell(instance, p, &set->graphs[i], err);
                drop(instance, &set->graphs[i]);
            } else {
                set->graphs[kept++] = set->graphs[i];
            }
        }
        set->count = kept;
    }
}

static TRITONSERVER_Error *record_give_input(struct instance *instance, struct trt_context *context,
                                             struct graph *graph, size_t tensor,
                                             const struct profile_given *given)
{
    const struct trt_tensor *of = &instance->engine->tensors[tensor];
    struct graph_tensor *kept = &graph->tensors[tensor];
    if (!of->is_shape)
        return trt_set_input(context, tensor, given->dims, given->rank,
                             instance->rooms[tensor].fixed);
    if (!kept->host)
        kept->host = malloc((given->count + 1) * TRITONSERVER_DataTypeByteSize(of->datatype));
    if (!kept->host)
        return berr_no_memory();
    profile_write_values(given, of->datatype, kept->host);
    return trt_set_input(context, tensor, given->dims, given->rank, kept->host);
}

static TRITONSERVER_Error *record_give_inputs(struct instance *instance, size_t profile,
                                              struct graph *graph)
{
    size_t input = 0;
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < instance->engine->count && !err; i++)
        if (instance->engine->tensors[i].is_input)
            err = record_give_input(instance, instance->contexts[profile], graph, i,
                                    &graph->most[input++]);
    return err ? err : trt_infer_shapes(instance->contexts[profile]);
}

static TRITONSERVER_Error *measure_output(struct graph_tensor *kept, const struct trt_tensor *of,
                                          struct trt_context *context, size_t tensor,
                                          uint64_t *ret_size)
{
    kept->rank = trt_output_shape(context, tensor, kept->dims);
    if (!engine_bytes(of, kept->dims, kept->rank, ret_size))
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "output '%s' has a shape that only the execution tells", of->name);
    if (of->is_shape && !kept->host)
        kept->host = malloc(*ret_size + 1);
    return of->is_shape && !kept->host ? berr_no_memory() : NULL;
}

/* How much memory a recording needs for inputs and outputs, and the shapes of its outputs. */
static TRITONSERVER_Error *measure(struct instance *instance, size_t profile, struct graph *graph)
{
    const struct engine *engine = instance->engine;
    size_t input = 0;
    TRITONSERVER_Error *err = record_give_inputs(instance, profile, graph);
    for (size_t i = 0; i < engine->count && !err; i++) {
        const struct trt_tensor *of = &engine->tensors[i];
        struct room *room = &instance->rooms[i];
        uint64_t size = 0;
        if (!of->is_input) {
            err = measure_output(&graph->tensors[i], of, instance->contexts[profile], i, &size);
        } else if (!engine_bytes(of, graph->most[input].dims, graph->most[input].rank, &size)) {
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' has an impossible shape",
                           of->name);
        }
        input += of->is_input;
        if (size > room->fixed_size)
            room->fixed_size = size;
    }
    return err;
}

static TRITONSERVER_Error *make_room(struct instance *instance, struct room *room)
{
    TRITONSERVER_Error *err = bcuda_alloc(instance->cuda, room->fixed_size, &room->fixed);
    return err || !room->fixed_size ? err
                                    : bcuda_clear(instance->cuda, room->fixed, room->fixed_size);
}

static TRITONSERVER_Error *make_rooms(struct instance *instance)
{
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < instance->engine->count && !err; i++)
        if (!instance->engine->tensors[i].is_shape)
            err = make_room(instance, &instance->rooms[i]);
    TRITONSERVER_Error *waited = bcuda_wait(instance->cuda);
    if (err)
        berr_drop(waited);
    return err ? err : waited;
}

/* TensorRT sets itself up in an execution that is not recorded. */
static TRITONSERVER_Error *record_run(struct instance *instance, struct trt_context *context,
                                      struct graph *graph)
{
    void *stream;
    TRITONSERVER_Error *err = bcuda_stream(instance->cuda, &stream);
    if (!err)
        err = trt_run(context, stream);
    if (!err)
        err = bcuda_wait(instance->cuda);
    if (!err)
        err = bcuda_record(instance->cuda);
    if (err)
        return err;
    err = trt_run(context, stream);
    TRITONSERVER_Error *ended = bcuda_recorded(instance->cuda, &graph->recording);
    if (err)
        berr_drop(ended);
    return err ? err : ended;
}

static TRITONSERVER_Error *record(struct instance *instance, size_t profile, struct graph *graph)
{
    struct trt_context *context = instance->contexts[profile];
    TRITONSERVER_Error *err = record_give_inputs(instance, profile, graph);
    for (size_t i = 0; i < instance->engine->count && !err; i++) {
        const struct trt_tensor *of = &instance->engine->tensors[i];
        if (!of->is_input)
            err = trt_set_output(context, i,
                                 of->is_shape ? graph->tensors[i].host : instance->rooms[i].fixed);
    }
    return err ? err : record_run(instance, context, graph);
}

static TRITONSERVER_Error *without_rooms(struct instance *instance, size_t profile,
                                         struct graph *graph)
{
    (void)instance;
    (void)profile;
    (void)graph;
    return berr_new(TRITONSERVER_ERROR_UNAVAILABLE, "no memory for its inputs and outputs");
}

static void free_rooms(struct instance *instance)
{
    for (size_t i = 0; i < instance->engine->count; i++) {
        bcuda_free(instance->cuda, instance->rooms[i].fixed);
        instance->rooms[i].fixed = NULL;
        instance->rooms[i].fixed_size = 0;
    }
}

TRITONSERVER_Error *record_all(struct instance *instance)
{
    TRITONSERVER_Error *err = list_graphs(instance);
    if (!err)
        err = bcuda_enter(instance->cuda);
    if (err)
        return err;
    each_graph(instance, measure);
    TRITONSERVER_Error *no_room = make_rooms(instance);
    if (no_room) {
        berr_log(no_room, "failed to get memory for CUDA graphs");
        each_graph(instance, without_rooms);
        free_rooms(instance);
    } else {
        each_graph(instance, record);
    }
    bcuda_leave();
    berr_drop(bcuda_settle(instance->cuda)); /* what failed here is not the first batch's */
    return NULL;
}

void record_end(struct instance *instance)
{
    for (size_t p = 0; instance->recorded && p < instance->profile_count; p++) {
        struct graph_set *set = &instance->recorded[p];
        for (size_t i = 0; i < set->count; i++)
            drop(instance, &set->graphs[i]);
        free(set->graphs);
    }
    free(instance->recorded);
    instance->recorded = NULL;
    if (instance->rooms)
        free_rooms(instance);
}

/* Each piece to where it lies in the larger shape. */
static TRITONSERVER_Error *record_spread(struct bcuda *cuda, char *to, const char *from,
                                         uint64_t element, const struct profile_given *given,
                                         const int64_t *large)
{
    int64_t elements;
    const int64_t pieces = graph_block(given->dims, large, given->rank, &elements);
    const uint64_t size = (uint64_t)elements * element;
    TRITONSERVER_Error *err = NULL;
    for (int64_t i = 0; i < pieces && size && !err; i++) {
        int64_t at = graph_offset(given->dims, large, given->rank, i);
        err = bcuda_copy(cuda, to + (uint64_t)at * element, from + (uint64_t)i * size, size);
    }
    return err;
}

TRITONSERVER_Error *record_input(struct instance *instance, struct brun *run, size_t tensor,
                                 const struct binput *input, const struct profile_given *given,
                                 const struct profile_given *recorded)
{
    const struct trt_tensor *of = &instance->engine->tensors[tensor];
    void *to = instance->rooms[tensor].fixed, *staged = NULL;
    const void *from = NULL;
    uint64_t size = 0, whole = 0;
    int64_t elements;
    if (!engine_bytes(of, recorded->dims, recorded->rank, &whole))
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "input '%s' has an impossible shape",
                        of->name);
    if (graph_block(given->dims, recorded->dims, given->rank, &elements) == 1) {
        binput_gpu_copy(run, input, to, whole);
        return NULL;
    }
    TRITONSERVER_Error *err = binput_gpu_size(run, input, run->rows, &size, &from);
    if (!err && !from && size) {
        err = bcuda_stage(instance->cuda, size, &staged);
        if (err)
            return err;
        binput_gpu_copy(run, input, staged, size);
        from = staged;
    }
    if (!err && whole)
        err = bcuda_clear(instance->cuda, to, whole);
    return err ? err
               : record_spread(instance->cuda, to, from,
                               TRITONSERVER_DataTypeByteSize(of->datatype), given, recorded->dims);
}
