#include "model.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "../common/bcuda.h"
#include "../common/bentry.h"
#include "../common/berr.h"

/* How many requests are answered together; a larger batch takes several rounds. */
enum { ROUND = 256 };

/* Where the bytes of an output go. */
struct place {
    char *data; /* NULL = no bytes */
    bool on_gpu;
};

struct answer {
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *err; /* NULL = good */
};

static uint64_t identity_run_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void delay(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static const struct model_pair *pair_of(const struct model *model, const char *output)
{
    for (uint32_t i = 0; i < model->pair_count; i++)
        if (strcmp(model->pairs[i].output, output) == 0)
            return &model->pairs[i];
    return NULL;
}

/* Gets the buffer of an output, on the instance's GPU if it has one and the server agrees. */
static TRITONSERVER_Error *output_buffer(const struct bcuda *cuda, TRITONBACKEND_Response *response,
                                         const char *name, TRITONSERVER_DataType datatype,
                                         const int64_t *shape, uint32_t dims_count, uint64_t size,
                                         struct place *ret)
{
    TRITONBACKEND_Output *output;
    TRITONSERVER_Error *err =
        TRITONBACKEND_ResponseOutput(response, &output, name, datatype, shape, dims_count);
    if (err)
        return err;
    TRITONSERVER_MemoryType memory_type = cuda ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
    int64_t memory_type_id = cuda ? bcuda_device(cuda) : 0;
    void *buffer = NULL;
    err = TRITONBACKEND_OutputBuffer(output, &buffer, size, &memory_type, &memory_type_id);
    if (err)
        return err;
    ret->on_gpu = memory_type == TRITONSERVER_MEMORY_GPU;
    if (ret->on_gpu && !cuda)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to create CPU output buffer");
    if (size && !buffer)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "output '%s' got no buffer", name);
    ret->data = buffer;
    return NULL;
}

/* Copies bytes; with a GPU, through its memory: the copy ends with bcuda_wait then. */
static TRITONSERVER_Error *transfer(struct bcuda *cuda, struct place to, const void *from,
                                    bool from_gpu, uint64_t size)
{
    if (!size)
        return NULL;
    if (!cuda) { /* a client may have put the output over the input, in shared memory */
        memmove(to.data, from, size);
        return NULL;
    }
    return to.on_gpu || from_gpu ? bcuda_copy(cuda, to.data, from, size)
                                 : bcuda_pass(cuda, to.data, from, size);
}

/* Copies the pieces of an input, one after the other. */
static TRITONSERVER_Error *identity_run_copy_pieces(struct bcuda *cuda, TRITONBACKEND_Input *input,
                                                    uint32_t count, struct place to, uint64_t room)
{
    for (uint32_t i = 0; i < count; i++) {
        const void *piece = NULL;
        uint64_t size = 0;
        TRITONSERVER_MemoryType memory_type =
            cuda ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
        int64_t memory_type_id = cuda ? bcuda_device(cuda) : 0;
        TRITONSERVER_Error *err =
            TRITONBACKEND_InputBuffer(input, i, &piece, &size, &memory_type, &memory_type_id);
        if (err)
            return err;
        bool on_gpu = memory_type == TRITONSERVER_MEMORY_GPU;
        if (on_gpu && !cuda)
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to get input in CPU memory");
        if (size > room)
            return berr_new(TRITONSERVER_ERROR_INTERNAL,
                            "the input's buffers hold more than its byte size");
        err = transfer(cuda, to, piece, on_gpu, size);
        if (err)
            return err;
        to.data += size;
        room -= size;
    }
    return NULL;
}

static TRITONSERVER_Error *copy_input(struct bcuda *cuda, TRITONBACKEND_Input *input,
                                      const char *output, TRITONBACKEND_Response *response)
{
    TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
    const int64_t *shape = NULL;
    uint32_t dims_count = 0, piece_count = 0;
    uint64_t size = 0;
    struct place to = {0};
    TRITONSERVER_Error *err = TRITONBACKEND_InputProperties(input, NULL, &datatype, &shape,
                                                            &dims_count, &size, &piece_count);
    if (!err)
        err = output_buffer(cuda, response, output, datatype, shape, dims_count, size, &to);
    return err || !to.data ? err : identity_run_copy_pieces(cuda, input, piece_count, to, size);
}

/* Writes an output whose optional input is missing: zeros, or empty strings. */
static TRITONSERVER_Error *write_zeros(struct bcuda *cuda, const struct model_pair *pair,
                                       bool batches, int64_t batch,
                                       TRITONBACKEND_Response *response)
{
    int64_t shape[MODEL_MAX_DIMS + 1] = {batch};
    uint32_t dims_count = pair->dims_count + (batches ? 1 : 0);
    memcpy(shape + (batches ? 1 : 0), pair->dims, pair->dims_count * sizeof *shape);

    uint32_t element = TRITONSERVER_DataTypeByteSize(pair->datatype);
    uint64_t size = pair->datatype == TRITONSERVER_TYPE_BYTES ? sizeof(uint32_t) : element;
    for (uint32_t i = 0; i < dims_count; i++)
        if (__builtin_mul_overflow(size, (uint64_t)shape[i], &size))
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "output '%s' is too large",
                            pair->output);
    struct place to = {0};
    TRITONSERVER_Error *err =
        output_buffer(cuda, response, pair->output, pair->datatype, shape, dims_count, size, &to);
    if (err || !to.data)
        return err;
    if (to.on_gpu)
        return bcuda_clear(cuda, to.data, size);
    memset(to.data, 0, size);
    return NULL;
}

/* Reads the batch size: for a model that batches, the first dimension of any input. */
static TRITONSERVER_Error *batch_of(const struct model *model, TRITONBACKEND_Request *request,
                                    int64_t *ret_batch)
{
    *ret_batch = 1;
    if (!model->batches)
        return NULL;
    TRITONBACKEND_Input *input;
    const int64_t *shape;
    uint32_t dims_count;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputByIndex(request, 0, &input);
    if (!err)
        err = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &dims_count, NULL, NULL);
    if (!err && dims_count > 0)
        *ret_batch = shape[0];
    return err;
}

/* Distinguishes a missing input from other failures without making an error object. */
static bool identity_run_has_input(TRITONBACKEND_Request *request, const char *name)
{
    uint32_t count = 0;
    berr_drop(TRITONBACKEND_RequestInputCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *found = "";
        berr_drop(TRITONBACKEND_RequestInputName(request, i, &found));
        if (strcmp(found, name) == 0)
            return true;
    }
    return false;
}

static TRITONSERVER_Error *write_output(const struct instance *instance,
                                        TRITONBACKEND_Request *request, const char *name,
                                        int64_t batch, TRITONBACKEND_Response *response)
{
    const struct model *model = instance->model;
    const struct model_pair *pair = pair_of(model, name);
    if (!pair)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "model has no output '%s'", name);
    if (pair->optional && !identity_run_has_input(request, pair->input))
        return write_zeros(instance->cuda, pair, model->batches, batch, response);
    TRITONBACKEND_Input *input;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInput(request, pair->input, &input);
    if (err) {
        berr_drop(err);
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "failed to get input '%s'", pair->input);
    }
    return copy_input(instance->cuda, input, name, response);
}

static TRITONSERVER_Error *identity_run_write_outputs(const struct instance *instance,
                                                      TRITONBACKEND_Request *request, int64_t batch,
                                                      TRITONBACKEND_Response *response)
{
    uint32_t count = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputCount(request, &count);
    for (uint32_t i = 0; i < count && !err; i++) {
        const char *name;
        err = TRITONBACKEND_RequestOutputName(request, i, &name);
        if (!err)
            err = write_output(instance, request, name, batch, response);
    }
    return err;
}

/* Nothing is sent before its bytes are there. If the GPU fails, all answers of the round do. */
static void wait_for_gpu(const struct instance *instance, struct answer *answers, uint32_t count)
{
    TRITONSERVER_Error *err = instance->cuda ? bcuda_wait(instance->cuda) : NULL;
    for (uint32_t i = 0; err && i < count; i++)
        if (!answers[i].err)
            answers[i].err =
                berr_new(TRITONSERVER_ErrorCode(err), "%s", TRITONSERVER_ErrorMessage(err));
    berr_drop(err);
}

/* Counts before it sends, so that a client that has the answer also finds it in the statistics. */
static void identity_run_finish(TRITONBACKEND_ModelInstance *handle, TRITONBACKEND_Request *request,
                                struct answer *answer, uint64_t start_ns, uint64_t end_ns)
{
    berr_log(TRITONBACKEND_ModelInstanceReportStatistics(handle, request, answer->err == NULL,
                                                         start_ns, start_ns, end_ns, end_ns),
             "failed to report statistics");
    if (answer->response)
        berr_log(TRITONBACKEND_ResponseSend(answer->response, TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                                            answer->err),
                 "failed to send a response");
    berr_drop(answer->err);
    berr_log(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL),
             "failed to release a request");
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests,
                  uint32_t request_count)
{
    TRITONBACKEND_ModelInstance *handle = instance->handle;
    struct answer answers[ROUND];
    uint64_t total = 0;
    uint64_t start_ns = identity_run_now_ns();
    if (instance->delay_ns)
        delay(instance->delay_ns);

    /* The copy is the computation, so there are no separate input and output times. */
    for (uint32_t first = 0; first < request_count; first += ROUND) {
        uint32_t count = request_count - first < ROUND ? request_count - first : ROUND;
        for (uint32_t i = 0; i < count; i++) {
            struct answer *answer = &answers[i];
            int64_t batch = 1;
            answer->response = NULL;
            answer->err = TRITONBACKEND_ResponseNew(&answer->response, requests[first + i]);
            if (!answer->err)
                answer->err = batch_of(instance->model, requests[first + i], &batch);
            if (!answer->err)
                answer->err = identity_run_write_outputs(instance, requests[first + i], batch,
                                                         answer->response);
            total += (uint64_t)batch;
        }
        wait_for_gpu(instance, answers, count);
        uint64_t end_ns = identity_run_now_ns();
        if (first + count == request_count)
            berr_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(handle, total, start_ns,
                                                                      start_ns, end_ns, end_ns),
                     "failed to report batch statistics");
        for (uint32_t i = 0; i < count; i++)
            identity_run_finish(handle, requests[first + i], &answers[i], start_ns, end_ns);
    }
}
