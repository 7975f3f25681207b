#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"
#include "triton/core/tritonserver.h"

/* TensorRT's runtime is C++; this is its interface for the rest of the backend, which is C. The
 * library is opened at run time and never linked. Everything here that has an engine or a context
 * wants the context of its GPU to be the thread's own (bcuda_enter). */

#ifdef __cplusplus
extern "C" {
#endif

struct trt_engine;  /* a plan in the memory of a GPU */
struct trt_context; /* one execution at a time, under one profile */

enum { TRT_NO_DLA = -1, TRT_PADDED = -1 };

/* An input or output of an engine. */
struct trt_tensor {
    const char *name;               /* of the engine */
    TRITONSERVER_DataType datatype; /* INVALID = one that the protocol does not have */
    bool is_input;
    bool is_shape;  /* a shape tensor: on the host, its values are dimensions */
    bool is_linear; /* its elements lie in the order of its dimensions */
    size_t rank;
    int64_t dims[PROFILE_MOST_DIMS]; /* -1 = any, as its profiles allow */
    /* If it is not linear: so many elements of that dimension lie together, the last ones with
     * room for as many; 0 or 1 = each by itself, TRT_PADDED = rows have room of another kind. */
    int64_t vector;
    size_t vector_dim;
};

/* trt_open - open the library, and the plug-ins that come with it; once, before all else. */
void trt_open(void);

/* trt_absence - why there is no TensorRT; NULL = there is one. */
const char *trt_absence(void);

/* trt_load - make an engine.
 * dla        the core of the deep learning accelerator that runs it, or TRT_NO_DLA
 * host_code  the plan may bring code of its own, as those of other versions of TensorRT do
 * ret        owned by the caller: trt_free
 * errors     INVALID_ARG for a core that is not there; INTERNAL, with TensorRT's message */
TRITONSERVER_Error *trt_load(const void *plan, size_t size, int64_t dla, bool host_code,
                             struct trt_engine **ret);

/* trt_free - NULL is allowed; no context of it may be left. */
void trt_free(struct trt_engine *engine);

/* trt_tensors - its inputs and outputs, as one list.
 * returns  borrowed from the engine */
const struct trt_tensor *trt_tensors(const struct trt_engine *engine, size_t *ret_count);

/* trt_profiles - the number of its optimization profiles. */
int32_t trt_profiles(const struct trt_engine *engine);

/* trt_limits - what a profile allows for an input.
 * errors  UNSUPPORTED for shape tensors of more than PROFILE_MOST_VALUES values; INTERNAL */
TRITONSERVER_Error *trt_limits(const struct trt_engine *engine, size_t tensor, int32_t profile,
                               struct profile_limits *ret);

/* trt_context_new - make a context for one profile of an engine.
 * grows   its memory follows the profile in use
 * stream  a CUstream; what is queued there for the context has to end before it is used
 * ret     owned by the caller: trt_context_free; keeps pointing to the engine */
TRITONSERVER_Error *trt_context_new(struct trt_engine *engine, int32_t profile, bool grows,
                                    void *stream, struct trt_context **ret);

/* trt_context_free - NULL is allowed. */
void trt_context_free(struct trt_context *context);

/* trt_set_input - give an execution an input.
 * data  aligned to TRT_ALIGN, on the GPU; of a shape tensor, on the host. NULL = its shape alone,
 *       for trt_infer_shapes */
enum { TRT_ALIGN = 256 };
TRITONSERVER_Error *trt_set_input(struct trt_context *context, size_t tensor, const int64_t *dims,
                                  size_t rank, const void *data);

/* trt_infer_shapes - find the shapes of outputs; all inputs are given. */
TRITONSERVER_Error *trt_infer_shapes(struct trt_context *context);

/* trt_output_shape - the shape of an output, after trt_infer_shapes.
 * trt_found_shape - the same after trt_run, also of an output that asked for memory.
 * ret_dims  PROFILE_MOST_DIMS slots; -1 = only trt_run tells
 * returns   how many there are */
size_t trt_output_shape(const struct trt_context *context, size_t tensor, int64_t *ret_dims);
size_t trt_found_shape(const struct trt_context *context, size_t tensor, int64_t *ret_dims);

/* trt_set_output - where an output of a known shape goes: memory as that of trt_set_input. */
TRITONSERVER_Error *trt_set_output(struct trt_context *context, size_t tensor, void *data);

/* Makes memory for an output of the execution; NULL = there is none. */
typedef void *trt_room_fn(void *of, size_t tensor, uint64_t size);

/* trt_ask_output - for an output whose shape trt_run finds: it asks for memory. */
TRITONSERVER_Error *trt_ask_output(struct trt_context *context, size_t tensor, trt_room_fn *room,
                                   void *of);

/* trt_run - queue the execution. */
TRITONSERVER_Error *trt_run(struct trt_context *context, void *stream);

#ifdef __cplusplus
}
#endif
