#include "nested.h"

#include <stdlib.h>
#include <string.h>

#include "common/berr.h"
#include "parameters.h"

struct nested {
    struct nested *next, **place; /* in host->nested */
    struct host *host;            /* busy until this is gone */
    struct stub *stub;
    uint64_t id;
    unsigned refs;         /* guarded by host->lock: the request, its responses, whoever cancels */
    bool decoupled, ended; /* ended: the last response was sent to the stub */
    TRITONSERVER_InferenceRequest *request; /* from its submission on; deleted with this */
    char *record;                           /* what the stub wrote; inputs lie in it */
    char **copies;                          /* of inputs that lay elsewhere */
    size_t copy_count;
};

/* Where an output of the other model goes. */
struct nested_buffer {
    struct stub *stub;
    uint64_t at; /* in the shared memory; 0 = behind this */
    bool taken;  /* the stub has it */
    _Alignas(16) char bytes[];
};

static void nested_unref(struct nested *nested)
{
    struct host *host = nested->host;
    pthread_mutex_lock(&host->lock);
    bool last = --nested->refs == 0;
    if (last && nested->place) {
        *nested->place = nested->next;
        if (nested->next)
            nested->next->place = nested->place;
    }
    pthread_mutex_unlock(&host->lock);
    if (!last)
        return;
    for (size_t i = 0; i < nested->copy_count; i++)
        free(nested->copies[i]);
    free(nested->copies);
    if (nested->request)
        berr_log(TRITONSERVER_InferenceRequestDelete(nested->request),
                 "Failed to delete inference request.");
    free(nested->record);
    stub_unref(nested->stub);
    free(nested);
    host_end(host);
}

/* -- responses -- */

static TRITONSERVER_Error *nested_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                        size_t bytes, TRITONSERVER_MemoryType kind, int64_t number,
                                        void *of, void **buffer, void **buffer_of,
                                        TRITONSERVER_MemoryType *ret_kind, int64_t *ret_number)
{
    (void)allocator, (void)kind, (void)number;
    struct nested *nested = of;
    bool large = bytes > LINK_INLINE_MAX;
    struct nested_buffer *made = malloc(sizeof *made + (large ? 0 : bytes));
    if (!made)
        return berr_no_memory();
    *made = (struct nested_buffer){.stub = nested->stub};
    if (large)
        made->at = arena_take(&nested->stub->arena, bytes);
    if (large && !made->at) {
        free(made);
        return berr_new(TRITONSERVER_ERROR_UNAVAILABLE,
                        "no shared memory for output '%s' of %zu bytes", name, bytes);
    }
    *buffer = large ? nested->stub->base + made->at : made->bytes;
    *buffer_of = made;
    *ret_kind = TRITONSERVER_MEMORY_CPU;
    *ret_number = 0;
    return NULL;
}

static TRITONSERVER_Error *nested_release(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                          void *buffer_of, size_t bytes,
                                          TRITONSERVER_MemoryType kind, int64_t number)
{
    (void)allocator, (void)buffer, (void)bytes, (void)kind, (void)number;
    struct nested_buffer *made = buffer_of;
    if (made && made->at && !made->taken)
        arena_give(&made->stub->arena, made->at);
    free(made);
    return NULL;
}

static TRITONSERVER_Error *nested_query(TRITONSERVER_ResponseAllocator *allocator, void *of,
                                        const char *name, size_t *bytes,
                                        TRITONSERVER_MemoryType *kind, int64_t *number)
{
    (void)allocator, (void)of, (void)name, (void)bytes;
    *kind = TRITONSERVER_MEMORY_CPU;
    *number = 0;
    return NULL;
}

static void nested_put_error(struct wire_out *out, TRITONSERVER_Error *err)
{
    const char *text = TRITONSERVER_ErrorMessage(err);
    wire_put_u32(out, 1);
    wire_put_u32(out, (uint32_t)TRITONSERVER_ErrorCode(err));
    wire_put_text(out, text, strlen(text));
}

static TRITONSERVER_Error *nested_parameter(void *response, uint32_t i, const char **ret_name,
                                            TRITONSERVER_ParameterType *ret_type,
                                            const void **ret_value)
{
    return TRITONSERVER_InferenceResponseParameter(response, i, ret_name, ret_type, ret_value);
}

static TRITONSERVER_Error *nested_put_parameters(struct wire_out *out,
                                                 TRITONSERVER_InferenceResponse *response)
{
    uint32_t count;
    TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseParameterCount(response, &count);
    return err ? err : parameters_put(out, count, nested_parameter, response);
}

/* Describes an output.
 * ret_buffer  where its bytes are, as nested_alloc made it; NULL = there are none */
static TRITONSERVER_Error *nested_output(TRITONSERVER_InferenceResponse *response, uint32_t i,
                                         struct wire_tensor *ret_tensor,
                                         struct nested_buffer **ret_buffer)
{
    struct wire_tensor tensor = {.place = WIRE_INLINE};
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint64_t rank;
    const void *base;
    size_t bytes;
    TRITONSERVER_MemoryType kind;
    int64_t number;
    void *buffer_of;
    TRITONSERVER_Error *err =
        TRITONSERVER_InferenceResponseOutput(response, i, &tensor.name, &datatype, &shape, &rank,
                                             &base, &bytes, &kind, &number, &buffer_of);
    if (err)
        return err;
    if (rank > WIRE_MAX_DIMS)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "output '%s' has too many dimensions",
                        tensor.name);
    struct nested_buffer *made = buffer_of;
    tensor.name_length = strlen(tensor.name);
    tensor.datatype = (uint32_t)datatype;
    tensor.rank = (uint32_t)rank;
    tensor.bytes = bytes;
    tensor.data = base;
    memcpy(tensor.shape, shape, rank * sizeof *shape);
    if (made && made->at) {
        tensor.place = WIRE_ARENA;
        tensor.where = made->at;
    }
    *ret_tensor = tensor;
    *ret_buffer = made;
    return NULL;
}

/* Writes a response's outputs. */
static TRITONSERVER_Error *nested_put_outputs(struct wire_out *out,
                                              TRITONSERVER_InferenceResponse *response)
{
    uint32_t count = 0;
    wire_put_u32(out, 0);
    TRITONSERVER_Error *err = nested_put_parameters(out, response);
    if (!err)
        err = TRITONSERVER_InferenceResponseOutputCount(response, &count);
    wire_put_u32(out, count);
    for (uint32_t i = 0; !err && i < count; i++) {
        struct wire_tensor tensor;
        struct nested_buffer *buffer;
        err = nested_output(response, i, &tensor, &buffer);
        if (!err)
            wire_put_tensor(out, &tensor);
    }
    return err;
}

/* The stub has the places of a response that it was sent. */
static void nested_hand_over(TRITONSERVER_InferenceResponse *response)
{
    uint32_t count = 0;
    berr_drop(TRITONSERVER_InferenceResponseOutputCount(response, &count));
    for (uint32_t i = 0; i < count; i++) {
        struct wire_tensor tensor;
        struct nested_buffer *buffer = NULL;
        berr_drop(nested_output(response, i, &tensor, &buffer));
        if (buffer)
            buffer->taken = true;
    }
}

/* Sends an error as the last response. */
static void nested_fail(struct stub *stub, uint64_t id, TRITONSERVER_Error *err)
{
    struct wire_out out = {0};
    wire_put_u32(&out, 1);
    wire_put_u32(&out, 1);
    nested_put_error(&out, err);
    if (!out.failed)
        stub_send(stub, LINK_NESTED, id, out.at, out.used);
    wire_fini(&out);
    TRITONSERVER_ErrorDelete(err);
}

static void nested_send(struct nested *nested, TRITONSERVER_InferenceResponse *response, bool last)
{
    struct wire_out out = {0};
    wire_put_u32(&out, last);
    wire_put_u32(&out, response != NULL);
    size_t head = out.used;
    TRITONSERVER_Error *err = NULL,
                       *said = response ? TRITONSERVER_InferenceResponseError(response) : NULL;
    if (said)
        nested_put_error(&out, said);
    else if (response)
        err = nested_put_outputs(&out, response);
    if (err) {
        out.used = head;
        nested_put_error(&out, err);
    }
    bool sent = !out.failed && stub_send(nested->stub, LINK_NESTED, nested->id, out.at, out.used);
    if (sent && response && !said && !err)
        nested_hand_over(response);
    berr_drop(err);
    wire_fini(&out);
}

static void nested_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                            void *of)
{
    struct nested *nested = of;
    bool final = flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL;
    if (!nested->decoupled && !response && !nested->ended) {
        nested->ended = true;
        nested_fail(
            nested->stub, nested->id,
            TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "Unexpected empty response."));
    } else if (!nested->ended) {
        nested->ended = final || !nested->decoupled;
        nested_send(nested, response, nested->ended);
    }
    if (response)
        berr_log(TRITONSERVER_InferenceResponseDelete(response),
                 "Failed to release BLS inference response.");
    if (final)
        nested_unref(nested);
}

static void nested_complete(TRITONSERVER_InferenceRequest *request, const uint32_t flags, void *of)
{
    (void)request, (void)flags;
    nested_unref(of);
}

/* -- requests -- */

static TRITONSERVER_Error *nested_set_parameter(void *request, const char *name, yyjson_val *value)
{
    if (yyjson_is_str(value))
        return TRITONSERVER_InferenceRequestSetStringParameter(request, name,
                                                               yyjson_get_str(value));
    if (yyjson_is_int(value))
        return TRITONSERVER_InferenceRequestSetIntParameter(request, name, yyjson_get_sint(value));
    if (yyjson_is_bool(value))
        return TRITONSERVER_InferenceRequestSetBoolParameter(request, name, yyjson_get_bool(value));
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "Unsupported value type on parameters");
}

/* Where an input's bytes are: in the record, or in a copy of what the stub has elsewhere. */
static TRITONSERVER_Error *nested_bytes(struct nested *nested, const struct wire_tensor *tensor,
                                        const char **ret_bytes)
{
    *ret_bytes = tensor->data;
    if (tensor->place == WIRE_INLINE)
        return NULL;
    char *copy = malloc(tensor->bytes ? tensor->bytes : 1);
    char **copies =
        copy ? realloc(nested->copies, (nested->copy_count + 1) * sizeof *copies) : NULL;
    if (!copies) {
        free(copy);
        return berr_new(TRITONSERVER_ERROR_UNAVAILABLE, "no memory for input '%s' of %llu bytes",
                        tensor->name, (unsigned long long)tensor->bytes);
    }
    nested->copies = copies;
    nested->copies[nested->copy_count++] = copy;
    if (!stub_fetch(nested->stub, tensor, copy))
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "the bytes of input '%s' are not there",
                        tensor->name);
    *ret_bytes = copy;
    return NULL;
}

static TRITONSERVER_Error *nested_inputs(struct nested *nested, struct wire_in *in,
                                         TRITONSERVER_InferenceRequest *request)
{
    TRITONSERVER_Error *err = NULL;
    uint32_t count = wire_count(in);
    for (uint32_t i = 0; i < count && !err; i++) {
        struct wire_tensor tensor;
        const char *bytes;
        wire_tensor(in, &tensor);
        if (in->bad)
            break;
        err = nested_bytes(nested, &tensor, &bytes);
        if (!err)
            err = TRITONSERVER_InferenceRequestAddInput(request, tensor.name,
                                                        (TRITONSERVER_DataType)tensor.datatype,
                                                        tensor.shape, tensor.rank);
        if (!err)
            err = TRITONSERVER_InferenceRequestAppendInputData(
                request, tensor.name, bytes, tensor.bytes, TRITONSERVER_MEMORY_CPU, 0);
    }
    return err;
}

static TRITONSERVER_Error *nested_correlation(struct wire_in *in,
                                              TRITONSERVER_InferenceRequest *request)
{
    if (wire_u32(in))
        return TRITONSERVER_InferenceRequestSetCorrelationIdString(request, wire_text(in, NULL));
    return TRITONSERVER_InferenceRequestSetCorrelationId(request, wire_u64(in));
}

/* Fills in a request from the record, behind the model's name and version and the trace. */
static TRITONSERVER_Error *nested_fill(struct nested *nested, struct wire_in *in,
                                       TRITONSERVER_InferenceRequest *request)
{
    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestSetId(request, wire_text(in, NULL));
    if (!err)
        err = nested_correlation(in, request);
    if (!err)
        err = TRITONSERVER_InferenceRequestSetFlags(request, wire_u32(in));
    if (!err)
        err = TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, wire_u64(in));
    if (!err)
        err = parameters_take(in, nested_set_parameter, request);
    uint32_t count = err ? 0 : wire_count(in);
    for (uint32_t i = 0; i < count && !err; i++)
        err = TRITONSERVER_InferenceRequestAddRequestedOutput(request, wire_text(in, NULL));
    if (!err)
        err = nested_inputs(nested, in, request);
    if (!err && in->bad)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "the request cannot be read");
    return err;
}

/* The code of a request to a model that is not ready: there may be no such model. */
static TRITONSERVER_Error_Code nested_not_ready(TRITONSERVER_Server *server, const char *model,
                                                int64_t version)
{
    TRITONSERVER_InferenceRequest *request;
    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestNew(&request, server, model, version);
    TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_UNAVAILABLE;
    if (err)
        code = TRITONSERVER_ErrorCode(err);
    else
        err = TRITONSERVER_InferenceRequestDelete(request);
    berr_drop(err);
    return code;
}

static TRITONSERVER_Error *nested_check(struct nested *nested, const char *model, int64_t version)
{
    TRITONSERVER_Server *server = nested->host->model->server;
    bool ready = false;
    uint32_t flags = 0;
    TRITONSERVER_Error *err = TRITONSERVER_ServerModelIsReady(server, model, version, &ready);
    if (!err && !ready)
        err = berr_new(nested_not_ready(server, model, version),
                       "Failed for execute the inference request. Model '%s' is not ready.", model);
    if (!err)
        err = TRITONSERVER_ServerModelTransactionProperties(server, model, version, &flags, NULL);
    if (!err && flags & TRITONSERVER_TXN_DECOUPLED && !nested->decoupled)
        err = berr_new(
            TRITONSERVER_ERROR_INTERNAL,
            "Model %s is using the decoupled. The current BLS request call doesn't support "
            "models using the decoupled transaction policy. Please use 'decoupled=True' "
            "argument to the 'exec' or 'async_exec' calls for decoupled models.'",
            model);
    return err;
}

/* The trace that a nested request belongs to: a child of the one of its request. */
static TRITONSERVER_InferenceTrace *nested_trace(struct host *host, uint64_t id)
{
    struct handle *handle = handle_find(host, id);
    TRITONSERVER_InferenceTrace *trace = NULL, *child = NULL;
    if (!handle || !handle->request)
        return NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestTrace(handle->request, &trace);
    if (!err && trace)
        err = TRITONSERVER_InferenceTraceSpawnChildTrace(trace, &child);
    berr_drop(err);
    return child;
}

static TRITONSERVER_Error *nested_allocator(struct host *host)
{
    if (host->allocator)
        return NULL;
    TRITONSERVER_Error *err =
        TRITONSERVER_ResponseAllocatorNew(&host->allocator, nested_alloc, nested_release, NULL);
    return err ? err
               : TRITONSERVER_ResponseAllocatorSetQueryFunction(host->allocator, nested_query);
}

static TRITONSERVER_Error *nested_submit(struct nested *nested, struct wire_in *in,
                                         TRITONSERVER_InferenceRequest *request, uint64_t trace)
{
    struct host *host = nested->host;
    TRITONSERVER_Error *err = nested_fill(nested, in, request);
    if (!err)
        err = nested_allocator(host);
    if (!err)
        err = TRITONSERVER_InferenceRequestSetReleaseCallback(request, nested_complete, nested);
    if (!err)
        err = TRITONSERVER_InferenceRequestSetResponseCallback(request, host->allocator, nested,
                                                               nested_response, nested);
    if (err)
        return err;
    pthread_mutex_lock(&host->lock);
    nested->refs += 2; /* its responses, its request */
    nested->request = request;
    pthread_mutex_unlock(&host->lock);
    err = TRITONSERVER_ServerInferAsync(host->model->server, request, nested_trace(host, trace));
    if (err) {
        pthread_mutex_lock(&host->lock);
        nested->refs -= 2;
        nested->request = NULL;
        pthread_mutex_unlock(&host->lock);
    }
    return err;
}

static TRITONSERVER_Error *nested_start(struct nested *nested, struct wire_in *in)
{
    nested->decoupled = wire_u32(in);
    const char *model = wire_text(in, NULL);
    int64_t version = (int64_t)wire_u64(in);
    uint64_t trace = wire_u64(in);
    TRITONSERVER_InferenceRequest *request = NULL;
    TRITONSERVER_Error *err = nested_check(nested, model, version);
    if (!err)
        err =
            TRITONSERVER_InferenceRequestNew(&request, nested->host->model->server, model, version);
    if (!err)
        err = nested_submit(nested, in, request, trace);
    if (!err)
        return NULL;
    if (request)
        berr_log(TRITONSERVER_InferenceRequestDelete(request),
                 "Failed to delete inference request.");
    return berr_about(err, "Model %s - Error when running inference", model);
}

void nested_begin(struct host *host, struct heard *heard)
{
    struct nested *nested = calloc(1, sizeof *nested);
    if (!nested) {
        nested_fail(host->stub, heard->id, berr_no_memory());
        return;
    }
    nested->host = host;
    nested->stub = stub_ref(host->stub);
    nested->id = heard->id;
    nested->refs = 1;
    nested->record = heard->data;
    heard->data = NULL;
    pthread_mutex_lock(&host->lock);
    host->busy++;
    nested->next = host->nested;
    nested->place = &host->nested;
    if (nested->next)
        nested->next->place = &nested->next;
    host->nested = nested;
    pthread_mutex_unlock(&host->lock);
    struct wire_in in = {.at = nested->record, .bytes = heard->bytes};
    TRITONSERVER_Error *err = nested_start(nested, &in);
    if (err)
        nested_fail(nested->stub, nested->id, err);
    nested_unref(nested);
}

static void nested_cancel_some(struct host *host, bool all, uint64_t id)
{
    pthread_mutex_lock(&host->lock);
    struct nested **some = host->busy ? malloc(host->busy * sizeof(struct nested *)) : NULL;
    size_t count = 0;
    for (struct nested *each = some ? host->nested : NULL; each; each = each->next) {
        if (each->request && (all || each->id == id)) {
            each->refs++;
            some[count++] = each;
        }
    }
    pthread_mutex_unlock(&host->lock);
    /* Without the lock: what is cancelled may call back. */
    for (size_t i = 0; i < count; i++) {
        berr_drop(TRITONSERVER_InferenceRequestCancel(some[i]->request));
        nested_unref(some[i]);
    }
    free(some);
}

void nested_cancel(struct host *host, uint64_t id)
{
    nested_cancel_some(host, false, id);
}

void nested_cancel_all(struct host *host)
{
    nested_cancel_some(host, true, 0);
}

void nested_cancel_unwanted(struct host *host)
{
    pthread_mutex_lock(&host->lock);
    bool any = host->nested != NULL;
    pthread_mutex_unlock(&host->lock);
    if (any && handle_all_cancelled(host))
        nested_cancel_all(host);
}
