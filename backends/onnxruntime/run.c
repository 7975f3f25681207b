#include "run.h"

#include "../common/bentry.h"
#include "../common/berr.h"
#include "batch_io.h"
#include "input.h"
#include "output.h"

static TRITONSERVER_Error *compute_on_cpu(const struct run *run)
{
    const struct ort *ort = run_ort(run);
    const struct model *model = run->model;
    return ort_err(ort->api,
                   ort->api->Run(run->instance->session->handle, run->instance->run_options,
                                 run->input_names, (const OrtValue *const *)run->input_values,
                                 run->input_count + model->batch_input_count, run->output_names,
                                 run->output_count, run->output_values));
}

/* Says where the tensors are: results stay on the GPU, but strings. */
static OrtStatus *bind_tensors(const struct run *run, OrtIoBinding *binding)
{
    const OrtApi *api = run_ort(run)->api;
    OrtStatus *status = NULL;
    size_t inputs = run->input_count + run->model->batch_input_count;
    for (size_t i = 0; i < inputs && !status; i++)
        status = api->BindInput(binding, run->input_names[i], run->input_values[i]);
    for (size_t i = 0; i < run->output_count && !status; i++)
        status = api->BindOutputToDevice(binding, run->output_names[i],
                                         output_is_text(run, i) ? run_ort(run)->cpu
                                                                : run->instance->session->memory);
    return status;
}

static OrtStatus *take_results(const struct run *run, const OrtIoBinding *binding)
{
    const OrtApi *api = run_ort(run)->api;
    OrtAllocator *allocator = NULL;
    OrtValue **values = NULL;
    size_t count = 0;
    OrtStatus *status = api->GetAllocatorWithDefaultOptions(&allocator);
    if (!status)
        status = api->GetBoundOutputValues(binding, allocator, &values, &count);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++)
        run->output_values[i] = values[i];
    return api->AllocatorFree(allocator, values);
}

static TRITONSERVER_Error *compute_on_gpu(const struct run *run)
{
    const OrtApi *api = run_ort(run)->api;
    const struct session *session = run->instance->session;
    OrtIoBinding *binding = NULL;
    TRITONSERVER_Error *err = session_check(session);
    if (!err) /* binding copies what operators on the host want, and does not look at the stream */
        err = bcuda_wait(session->cuda);
    if (err)
        return err;
    OrtStatus *status = api->CreateIoBinding(session->handle, &binding);
    if (!status)
        status = bind_tensors(run, binding);
    if (!status)
        status = api->RunWithBinding(session->handle, run->instance->run_options, binding);
    if (!status)
        status = take_results(run, binding);
    if (binding)
        api->ReleaseIoBinding(binding);
    err = ort_err(api, status);
    return err ? err : bcuda_wait(session->cuda);
}

static TRITONSERVER_Error *onnxruntime_run_compute(const struct run *run)
{
    return run->instance->session->cuda ? compute_on_gpu(run) : compute_on_cpu(run);
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

static TRITONSERVER_Error *answer_batch(struct run *run)
{
    struct brun *batch = run->batch;
    TRITONSERVER_Error *err = input_collect(run);
    if (!err && batch->batch_size > 0)
        err = input_bind(run);
    if (!err && batch->batch_size > 0 && run->model->batch_input_count)
        err = batch_io_bind(run);
    if (!err)
        err = output_select(run);
    if (!err && brun_any_good(batch))
        err = output_foresee(run);
    batch->compute_start_ns = brun_now_ns();
    if (!err && brun_any_good(batch))
        err = compute_outputs(run);
    batch->compute_end_ns = brun_now_ns();
    if (!err && brun_any_good(batch))
        err = output_write(run);
    return err;
}

static TRITONSERVER_Error *onnxruntime_run_work(struct brun *batch, void *of)
{
    struct instance *instance = of;
    struct run run = {.batch = batch, .instance = instance, .model = instance->model};
    TRITONSERVER_Error *err = answer_batch(&run);
    input_release(&run);
    output_release(&run);
    return err;
}

void run_requests(struct instance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    brun_requests(&instance->place, requests, count, onnxruntime_run_work, instance);
}
