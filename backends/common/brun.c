#include "brun.h"

#include <time.h>

#include "berr.h"

uint64_t brun_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void brun_fail(struct brun_item *item, TRITONSERVER_Error *err)
{
    if (err && item->err)
        berr_drop(err);
    else if (err)
        item->err = err;
}

void brun_fail_all(struct brun *run, TRITONSERVER_Error *err)
{
    if (!err)
        return;
    for (uint32_t i = 0; i < run->count; i++)
        if (!run->items[i].err)
            run->items[i].err =
                TRITONSERVER_ErrorNew(TRITONSERVER_ErrorCode(err), TRITONSERVER_ErrorMessage(err));
    berr_drop(err);
}

bool brun_any_good(const struct brun *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (!run->items[i].err)
            return true;
    return false;
}

bool brun_bytes(TRITONSERVER_DataType datatype, const int64_t *shape, size_t rank,
                uint64_t *ret_bytes)
{
    return brun_vector_bytes(datatype, shape, rank, (struct brun_vector){0}, ret_bytes);
}

bool brun_vector_bytes(TRITONSERVER_DataType datatype, const int64_t *shape, size_t rank,
                       struct brun_vector vector, uint64_t *ret_bytes)
{
    uint32_t element = TRITONSERVER_DataTypeByteSize(datatype);
    uint64_t bytes = element ? element : 1;
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        uint64_t size = (uint64_t)shape[i], group = (uint64_t)vector.count;
        if (vector.count > 1 && i == vector.dim)
            size = (size + group - 1) / group * group;
        empty = empty || size == 0;
        if (shape[i] < 0 || (size > 0 && __builtin_mul_overflow(bytes, size, &bytes)) ||
            bytes > INT64_MAX)
            return false;
    }
    *ret_bytes = element && !empty ? bytes : 0;
    return true;
}

/* Reads the batch size: for a model that batches, the first dimension of an input. */
static TRITONSERVER_Error *brun_read_rows(const struct brun_place *place, struct brun_item *item)
{
    item->rows = 1;
    if (place->max_batch_size == 0)
        return NULL;
    TRITONBACKEND_Input *input;
    const int64_t *shape;
    uint32_t rank = 0;
    TRITONSERVER_Error *err =
        place->rows_of ? TRITONBACKEND_RequestInput(item->request, place->rows_of, &input)
                       : TRITONBACKEND_RequestInputByIndex(item->request, 0, &input);
    if (err && !place->rows_of) {
        berr_drop(err);
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "the request has no input, model '%s' needs at least one", place->model);
    }
    if (!err)
        err = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &rank, NULL, NULL);
    if (!err && rank == 0)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "the first input has no batch dimension");
    if (!err)
        item->rows = shape[0];
    return err;
}

static TRITONSERVER_Error *brun_begin(struct brun *run, TRITONBACKEND_Request **requests)
{
    const struct brun_place *place = run->place;
    int64_t rows = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        struct brun_item *item = &run->items[i];
        item->request = requests[i];
        brun_fail(item, TRITONBACKEND_ResponseNew(&item->response, item->request));
        if (!item->err)
            brun_fail(item, brun_read_rows(place, item));
        if (!item->err)
            rows += item->rows;
    }
    if (place->max_batch_size > 0 && rows > place->max_batch_size)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "batch size %lld for '%s', max allowed is %lld", (long long)rows,
                        place->model, (long long)place->max_batch_size);
    return NULL;
}

/* Counts before it sends, so that a client that has the answer also finds it in the statistics. */
static void brun_finish(struct brun *run, uint64_t start_ns, uint64_t end_ns)
{
    TRITONBACKEND_ModelInstance *handle = run->place->handle;
    if (brun_any_good(run))
        berr_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(handle, (uint64_t)run->rows,
                                                                  start_ns, run->compute_start_ns,
                                                                  run->compute_end_ns, end_ns),
                 "failed to report batch statistics");
    for (uint32_t i = 0; i < run->count; i++) {
        struct brun_item *item = &run->items[i];
        berr_log(TRITONBACKEND_ModelInstanceReportStatistics(
                     handle, item->request, item->err == NULL, start_ns, run->compute_start_ns,
                     run->compute_end_ns, end_ns),
                 "failed to report statistics");
        if (item->response)
            berr_log(TRITONBACKEND_ResponseSend(item->response,
                                                TRITONSERVER_RESPONSE_COMPLETE_FINAL, item->err),
                     "failed to send a response");
        berr_drop(item->err);
        berr_log(TRITONBACKEND_RequestRelease(item->request, TRITONSERVER_REQUEST_RELEASE_ALL),
                 "failed to release a request");
    }
}

static void brun_run_batch(struct brun *run, TRITONBACKEND_Request **requests, brun_work_fn *work,
                           void *of)
{
    uint64_t start_ns = brun_now_ns();
    run->compute_start_ns = run->compute_end_ns = start_ns;
    TRITONSERVER_Error *err = brun_begin(run, requests);
    if (!err)
        err = work(run, of);
    brun_fail_all(run, err);
    if (run->place->cuda)
        brun_fail_all(run, bcuda_settle(run->place->cuda));
    brun_finish(run, start_ns, brun_now_ns());
    scratch_reset(&run->place->scratch);
}

/* Puts the requests that agree with the first one behind it, and counts them with it. */
static uint32_t gather_agreeing(struct brun_place *place, TRITONBACKEND_Request **requests,
                                uint32_t count, void *of)
{
    uint32_t found = 1;
    for (uint32_t i = 1; i < count; i++) {
        TRITONBACKEND_Request *request = requests[i];
        if (place->agree && !place->agree(place, requests[0], request, of))
            continue;
        requests[i] = requests[found];
        requests[found++] = request;
    }
    return found;
}

void brun_requests(struct brun_place *place, TRITONBACKEND_Request **requests, uint32_t count,
                   brun_work_fn *work, void *of)
{
    while (count > 0) {
        /* One by one if there is no batch to share, or no memory for the list. */
        struct brun_item one = {0}, *items = NULL;
        uint32_t now = place->max_batch_size > 0 ? gather_agreeing(place, requests, count, of) : 1;
        if (now > 1)
            items = scratch_array(&place->scratch, now, sizeof *items);
        struct brun run = {.place = place, .items = items ? items : &one, .count = items ? now : 1};
        brun_run_batch(&run, requests, work, of);
        requests += run.count;
        count -= run.count;
    }
}
