#include "run.h"

#include <time.h>

#include "../common/berr.h"
#include "batch_io.h"
#include "input.h"
#include "output.h"

/* When the stages of a run ended, monotonic ns. */
struct times {
    uint64_t start;
    uint64_t compute_start;
    uint64_t compute_end;
    uint64_t end;
};

static uint64_t onnxruntime_run_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void run_fail(struct run_item *item, TRITONSERVER_Error *err)
{
    if (err && item->err)
        berr_drop(err);
    else if (err)
        item->err = err;
}

void run_fail_all(struct run *run, TRITONSERVER_Error *err)
{
    if (!err)
        return;
    for (uint32_t i = 0; i < run->count; i++)
        if (!run->items[i].err)
            run->items[i].err =
                TRITONSERVER_ErrorNew(TRITONSERVER_ErrorCode(err), TRITONSERVER_ErrorMessage(err));
    berr_drop(err);
}

static bool any_good(const struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (!run->items[i].err)
            return true;
    return false;
}

/* Reads the batch size: for a model that batches, the first dimension of any input. */
static TRITONSERVER_Error *onnxruntime_run_read_rows(const struct model *model,
                                                     struct run_item *item)
{
    item->rows = 1;
    if (model->max_batch_size == 0)
        return NULL;
    TRITONBACKEND_Input *input;
    const int64_t *shape;
    uint32_t rank = 0;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInputByIndex(item->request, 0, &input);
    if (!err)
        err = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &rank, NULL, NULL);
    if (!err && rank == 0)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "the first input has no batch dimension");
    if (!err)
        item->rows = shape[0];
    return err;
}

static TRITONSERVER_Error *onnxruntime_run_begin(struct run *run, TRITONBACKEND_Request **requests)
{
    const struct model *model = run->model;
    int64_t rows = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        struct run_item *item = &run->items[i];
        item->request = requests[i];
        run_fail(item, TRITONBACKEND_ResponseNew(&item->response, item->request));
        if (!item->err)
            run_fail(item, onnxruntime_run_read_rows(model, item));
        if (!item->err)
            rows += item->rows;
    }
    if (model->max_batch_size > 0 && rows > model->max_batch_size)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "batch size %lld for '%s', max allowed is %lld", (long long)rows,
                        model->name, (long long)model->max_batch_size);
    return NULL;
}

static TRITONSERVER_Error *onnxruntime_run_compute(const struct run *run)
{
    const struct model *model = run->model;
    return ort_err(model->api,
                   model->api->Run(model->session, run->instance->run_options, run->input_names,
                                   (const OrtValue *const *)run->input_values,
                                   run->input_count + model->batch_input_count, run->output_names,
                                   run->output_count, run->output_values));
}

/* Runs the model. If an output does not have its declared shape, the run is repeated. */
static TRITONSERVER_Error *compute_outputs(struct run *run)
{
    if (run->output_count == 0)
        return NULL;
    TRITONSERVER_Error *err = onnxruntime_run_compute(run);
    if (!err && output_as_foreseen(run))
        return NULL;
    if (!output_take_back(run))
        return err;
    berr_drop(err);
    return onnxruntime_run_compute(run);
}

static TRITONSERVER_Error *onnxruntime_run_work(struct run *run, struct times *times)
{
    TRITONSERVER_Error *err = input_collect(run);
    if (!err && run->batch_size > 0)
        err = input_bind(run);
    if (!err && run->batch_size > 0 && run->model->batch_input_count)
        err = batch_io_bind(run);
    if (!err)
        err = output_select(run);
    if (!err && any_good(run))
        err = output_foresee(run);
    times->compute_start = onnxruntime_run_now_ns();
    if (!err && any_good(run))
        err = compute_outputs(run);
    times->compute_end = onnxruntime_run_now_ns();
    if (!err && any_good(run))
        err = output_write(run);
    return err;
}

/* Counts before it sends, so that a client that has the answer also finds it in the statistics. */
static void onnxruntime_run_finish(struct run *run, const struct times *times)
{
    TRITONBACKEND_ModelInstance *handle = run->instance->handle;
    if (any_good(run))
        berr_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                     handle, (uint64_t)run->rows, times->start, times->compute_start,
                     times->compute_end, times->end),
                 "failed to report batch statistics");
    for (uint32_t i = 0; i < run->count; i++) {
        struct run_item *item = &run->items[i];
        berr_log(TRITONBACKEND_ModelInstanceReportStatistics(
                     handle, item->request, item->err == NULL, times->start, times->compute_start,
                     times->compute_end, times->end),
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

static void onnxruntime_run_batch(struct instance *instance, TRITONBACKEND_Request **requests,
                                  struct run_item *items, uint32_t count)
{
    struct times times = {.start = onnxruntime_run_now_ns()};
    times.compute_start = times.compute_end = times.start;
    struct run run = {
        .instance = instance, .model = instance->model, .items = items, .count = count};
    TRITONSERVER_Error *err = onnxruntime_run_begin(&run, requests);
    if (!err)
        err = onnxruntime_run_work(&run, &times);
    run_fail_all(&run, err);
    times.end = onnxruntime_run_now_ns();
    input_release(&run);
    output_release(&run);
    onnxruntime_run_finish(&run, &times);
    scratch_reset(&instance->scratch);
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    /* One by one if there is no batch to share, or no memory for the list. */
    struct run_item *items = instance->model->max_batch_size > 0 && count > 1
                                 ? scratch_array(&instance->scratch, count, sizeof *items)
                                 : NULL;
    if (items) {
        onnxruntime_run_batch(instance, requests, items, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct run_item item = {0};
        onnxruntime_run_batch(instance, &requests[i], &item, 1);
    }
}
