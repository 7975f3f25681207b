/* identity: a backend whose outputs are its inputs. OUTPUTn copies INPUTn where names follow
 * that pattern; the other outputs copy the other inputs by position. Every data type and shape, any
 * number of tensors.
 *
 * Parameters of a model, all optional, as string_value:
 *   execute_delay_ms, execute_delay_us  wait so long in each execution (both are added)
 *   instance_wise_delay_multiplier      instance i waits i * multiplier times as long, at least
 *                                       once
 *   creation_delay_sec                  wait so long while loading */
#include "triton/core/nereid_backend.h"

#include "../common/bcuda.h"
#include "../common/bentry.h"
#include "../common/berr.h"
#include "model.h"

/* A copy is short, waits for nothing and has finished when Execute returns. If tensors are
 * large, the server notices and stops calling on network threads. */
const uint32_t nereid_backend_inline_v1 = 1;

/* An output is as long as the input that is copied to it, or is zeroed. */
const uint32_t nereid_backend_fills_outputs_v1 = 1;

/* What it waits for comes before its first answer. */
const uint32_t nereid_backend_answers_last_v1 = 1;

/* An instance with a configured delay blocks, and one on a GPU waits for it. */
bool nereid_instance_inline_v1(TRITONBACKEND_ModelInstance *handle)
{
    void *state = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceState(handle, &state);
    const struct instance *instance = state;
    bool waits = err || instance->delay_ns || instance->cuda;
    berr_drop(err);
    return !waits;
}

TRITONSERVER_Error *bentry_begin(TRITONBACKEND_Backend *backend, void **ret_runtime)
{
    (void)backend;
    (void)ret_runtime;
    return NULL;
}

void bentry_end(void *runtime)
{
    (void)runtime;
}

const size_t instance_size = sizeof(struct instance);

bool bentry_uses_gpus(void *runtime)
{
    (void)runtime;
    return true;
}

TRITONSERVER_Error *instance_init(struct instance *instance, struct model *model,
                                  TRITONBACKEND_ModelInstance *handle)
{
    uint64_t index = atomic_fetch_add_explicit(&model->next_index, 1, memory_order_relaxed);
    uint64_t times = model->delay_multiplier * index;
    *instance = (struct instance){
        .handle = handle, .model = model, .delay_ns = model->delay_ns * (times ? times : 1)};
    TRITONSERVER_InstanceGroupKind kind;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (!err && kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        err = bcuda_open(handle, &instance->cuda);
    return err;
}

void instance_fini(struct instance *instance)
{
    bcuda_close(instance->cuda);
}
