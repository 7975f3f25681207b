#include "plugin/custom_run.h"

#include "base/arena.h"
#include "infer/on_host.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "infer/trace.h"
#include "model/config.h"
#include "model/shape.h"
#include "os/clock.h"
#include "plugin/custom_library.h"
#include "plugin/instance.h"

#include <inttypes.h>
#include <string.h>

#define FIRST_BYTES 4096u /* enough for a batch of a few small requests */

/* One request while it executes: the input_context and output_context of its payload. */
struct custom_request {
    struct request *request;
    struct response *response;
    uint32_t *next_piece; /* per input */
    struct err *error;    /* why a tensor could not be had; owned */
};

static CustomMemoryType memory_type(enum buf_memory memory)
{
    switch (memory) {
    case BUF_MEMORY_GPU:
        return CUSTOM_MEMORY_GPU;
    case BUF_MEMORY_CPU_PINNED:
        return CUSTOM_MEMORY_CPU_PINNED;
    case BUF_MEMORY_CPU:
        break;
    }
    return CUSTOM_MEMORY_CPU;
}

static bool next_input_v2(void *context, const char *name, const void **content,
                          uint64_t *content_byte_size, CustomMemoryType *type, int64_t *device)
{
    struct custom_request *c = context;
    struct request *r = c->request;
    uint32_t i = 0;
    while (i < r->input_count && strcmp(r->inputs[i].name, name) != 0)
        i++;
    if (i == r->input_count)
        return false;
    struct tensor_input *in = &r->inputs[i];
    *content = NULL;
    *content_byte_size = 0;
    /* Skip pieces without bytes: an empty piece would mean the end of the input. */
    while (c->next_piece[i] < in->piece_count && !in->pieces[c->next_piece[i]].size)
        c->next_piece[i]++;
    if (c->next_piece[i] == in->piece_count)
        return true;
    const struct tensor_piece *p = &in->pieces[c->next_piece[i]];
    if (p->memory == BUF_MEMORY_GPU && *type != CUSTOM_MEMORY_GPU) {
        struct err *e = on_host_piece(in, in->pieces, c->next_piece[i]);
        if (e) {
            err_free(c->error);
            c->error = e;
            return false;
        }
    }
    c->next_piece[i]++;
    *content = p->data;
    *content_byte_size = p->size;
    *type = memory_type(p->memory);
    *device = p->device;
    return true;
}

static bool next_input(void *context, const char *name, const void **content,
                       uint64_t *content_byte_size)
{
    CustomMemoryType type = CUSTOM_MEMORY_CPU;
    int64_t device = 0;
    return next_input_v2(context, name, content, content_byte_size, &type, &device) &&
           type != CUSTOM_MEMORY_GPU;
}

static bool custom_run_is_wanted(const struct request *r, const char *name)
{
    for (uint32_t i = 0; i < r->output_count; i++)
        if (strcmp(r->outputs[i], name) == 0)
            return true;
    return false;
}

static bool is_made(const struct response *r, const char *name)
{
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        if (strcmp(o->name, name) == 0)
            return true;
    return false;
}

static struct err *custom_run_check_output(const struct custom_request *c, const char *name,
                                           enum datatype datatype, const int64_t *dims, size_t rank,
                                           uint64_t byte_size)
{
    uint64_t elements;
    uint32_t size = datatype_bytes(datatype);
    if (is_made(c->response, name))
        return err_new(STATUS_INVALID_ARG, "output '%s' was asked for twice", name);
    if (rank > UINT32_MAX || !shape_elements(dims, rank, &elements))
        return err_new(STATUS_INVALID_ARG, "output '%s' has an impossible shape", name);
    if (size && (elements > UINT64_MAX / size || elements * size != byte_size))
        return err_new(STATUS_INVALID_ARG,
                       "output '%s' has %" PRIu64 " elements of %" PRIu32
                       " bytes, and its size is given as %" PRIu64 " bytes",
                       name, elements, size, byte_size);
    return NULL;
}

/* Makes an output, with memory if the output is wanted. */
static struct err *make_output(struct custom_request *c, const char *name, const int64_t *dims,
                               size_t rank, uint64_t byte_size, struct tensor_output **ret)
{
    const struct model_config *config = c->request->config;
    int32_t index = config_output(config, name, strlen(name));
    enum datatype datatype = index < 0 ? DATATYPE_INVALID : config->outputs[index].datatype;
    struct err *e = custom_run_check_output(c, name, datatype, dims, rank, byte_size);
    if (e)
        return e;
    struct tensor_output *o =
        response_add_output(c->response, name, datatype, dims, (uint32_t)rank);
    *ret = o;
    return response_output_memory_for_backend(c->response, o, byte_size, BUF_MEMORY_CPU, 0);
}

static bool get_output_v2(void *context, const char *name, size_t rank, int64_t *dims,
                          uint64_t byte_size, void **content, CustomMemoryType *type,
                          int64_t *device)
{
    struct custom_request *c = context;
    *content = NULL;
    if (!custom_run_is_wanted(c->request, name))
        return true;
    struct tensor_output *o = NULL;
    struct err *e = make_output(c, name, dims, rank, byte_size, &o);
    if (e) {
        err_free(c->error);
        c->error = e;
        return false;
    }
    *content = o->data;
    *type = memory_type(o->memory);
    *device = o->device;
    return true;
}

static bool custom_run_get_output(void *context, const char *name, size_t rank, int64_t *dims,
                                  uint64_t byte_size, void **content)
{
    CustomMemoryType type = CUSTOM_MEMORY_CPU;
    int64_t device = 0;
    return get_output_v2(context, name, rank, dims, byte_size, content, &type, &device) &&
           type != CUSTOM_MEMORY_GPU;
}

static void fill_inputs(struct arena *a, const struct request *r, CustomPayload *p)
{
    const char **names = arena_alloc(a, r->input_count * sizeof(*names));
    size_t *ranks = arena_alloc(a, r->input_count * sizeof(*ranks));
    const int64_t **shapes = arena_alloc(a, r->input_count * sizeof(*shapes));
    for (uint32_t i = 0; i < r->input_count; i++) {
        const struct tensor_input *in = &r->inputs[i];
        int32_t index = config_input(r->config, in->name, strlen(in->name));
        bool rows = r->config->max_batch_size > 0 && in->model_rank > 0 &&
                    !(index >= 0 && r->config->inputs[index].shape_tensor);
        names[i] = in->name;
        ranks[i] = in->model_rank - rows;
        shapes[i] = in->model_shape + rows;
    }
    p->input_cnt = r->input_count;
    p->input_names = names;
    p->input_shape_dim_cnts = ranks;
    p->input_shape_dims = shapes;
}

static void custom_run_begin(struct arena *a, struct request *r, struct custom_request *c,
                             CustomPayload *p)
{
    *c = (struct custom_request){.request = r,
                                 .response = response_new(r),
                                 .next_piece =
                                     arena_zalloc(a, r->input_count * sizeof(*c->next_piece))};
    *p = (CustomPayload){.batch_size = r->batch_size,
                         .output_cnt = r->output_count,
                         .required_output_names = r->outputs,
                         .input_context = c,
                         .output_context = c};
    fill_inputs(a, r, p);
}

static void custom_run_report(struct plugin_instance *i, const struct request *r,
                              const struct stats_compute *times, bool success)
{
    time_ns now = clock_now_ns();
    if (success)
        stats_success(i->stats, r->times.start, r->times.queue_start, times, now, r->batch_size);
    else
        stats_failure(i->stats, STATS_BACKEND, r->times.start, now);
    if (!r->trace)
        return;
    trace_report(r->trace, TRITONSERVER_TRACE_COMPUTE_START, times->start);
    trace_report(r->trace, TRITONSERVER_TRACE_COMPUTE_INPUT_END, times->input_end);
    trace_report(r->trace, TRITONSERVER_TRACE_COMPUTE_OUTPUT_START, times->output_start);
    trace_report(r->trace, TRITONSERVER_TRACE_COMPUTE_END, times->end);
}

/* Answers one request. */
static void custom_run_end(struct plugin_instance *i, struct custom_request *c, int code,
                           const struct stats_compute *times)
{
    const struct custom_context *context = i->state;
    struct err *e = c->error;
    if (code) {
        err_free(e);
        e = err_new(STATUS_INTERNAL, "payload error for '%s': (%d) %s", i->name, code,
                    custom_library_words(context->library, context->own, code));
    }
    custom_run_report(i, c->request, times, !e);
    if (e) {
        response_free(c->response);
        response_fail(c->request, e);
        return;
    }
    response_send(c->response, RESPONSE_FINAL, NULL);
    request_release(c->request);
}

static int custom_run_execute(const struct custom_context *context, CustomPayload *payloads,
                              size_t count)
{
    const struct custom_library *l = context->library;
    return l->version == 2 ? l->execute_v2(context->own, (uint32_t)count, payloads, next_input_v2,
                                           get_output_v2)
                           : l->execute(context->own, (uint32_t)count, payloads, next_input,
                                        custom_run_get_output);
}

struct err *custom_run(struct plugin_instance *i, struct request **requests, size_t count)
{
    const struct custom_context *context = i->state;
    _Alignas(16) char first[FIRST_BYTES];
    struct arena arena;
    arena_init(&arena, first, sizeof(first));
    struct stats_compute times = {.start = clock_now_ns()};
    struct custom_request *calls = arena_alloc(&arena, count * sizeof(*calls));
    CustomPayload *payloads = arena_alloc(&arena, count * sizeof(*payloads));
    uint32_t rows = 0;
    for (size_t k = 0; k < count; k++) {
        custom_run_begin(&arena, requests[k], &calls[k], &payloads[k]);
        rows += requests[k]->batch_size;
    }
    times.input_end = clock_now_ns();
    int code = custom_run_execute(context, payloads, count);
    times.output_start = times.end = clock_now_ns();
    struct err *e = NULL;
    if (code)
        e = err_new(STATUS_INTERNAL, "execute error for '%s': (%d) %s", i->name, code,
                    custom_library_words(context->library, context->own, code));
    else
        stats_batch(i->stats, rows, &times, clock_wall_at(times.end));
    for (size_t k = 0; k < count; k++) {
        if (!e) {
            custom_run_end(i, &calls[k], payloads[k].error_code, &times);
            continue;
        }
        response_free(calls[k].response);
        err_free(calls[k].error);
    }
    arena_fini(&arena);
    return e;
}
