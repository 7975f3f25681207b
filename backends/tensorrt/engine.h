#pragma once

#include "check.h"
#include "model.h"

/* A plan in the memory of one GPU, which all instances there share. Read-only but for the list. */

struct engine {
    struct engine *next;
    int32_t device;
    int64_t dla;
    uint32_t users; /* under the model's lock */
    struct bcuda *cuda;
    struct trt_engine *trt;
    size_t count;                     /* of its inputs and outputs */
    const struct trt_tensor *tensors; /* borrowed from `trt` */
    struct check_role *roles;         /* one for each, once the configuration is complete */
    size_t input_count;
    int32_t profile_count;
};

/* engine_bytes - the size of an input or output of this shape.
 * returns  false if the shape has an open dimension or overflows */
static inline bool engine_bytes(const struct trt_tensor *tensor, const int64_t *dims, size_t rank,
                                uint64_t *ret_bytes)
{
    return brun_vector_bytes(tensor->datatype, dims, rank,
                             (struct brun_vector){tensor->vector_dim, tensor->vector}, ret_bytes);
}

/* engine_take - get the engine of a GPU, and of a core of the deep learning accelerator if `dla` is
 * not TRT_NO_DLA; reads the plan if need be, and checks the configuration against it.
 * ret     given back with engine_give
 * errors  naming the model */
TRITONSERVER_Error *engine_take(struct model *model, int32_t device, int64_t dla,
                                struct engine **ret);

/* engine_give - NULL is allowed. The last one of a model is freed with it. */
void engine_give(struct model *model, struct engine *engine);

/* engine_complete - complete the model's configuration with what the plan of its first GPU says.
 * That engine is kept for the first instance. */
TRITONSERVER_Error *engine_complete(struct model *model);

/* engine_free_all - the model ends; no instance is left. */
void engine_free_all(struct model *model);

/* engine_limits - what a profile allows for the engine's inputs, in their order.
 * ret     input_count of them, owned by the caller: free */
TRITONSERVER_Error *engine_limits(const struct engine *engine, int32_t profile,
                                  struct profile_limits **ret);
