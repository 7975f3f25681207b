#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

/* PyTorch's runtime is C++; this is its interface for the rest of the backend, which is C. No
 * exception leaves it. */

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of an argument or result of a model. */
enum libtorch_kind {
    LIBTORCH_TENSOR,
    LIBTORCH_NUMBER,  /* int, float or bool; arguments only: made from a tensor of one element */
    LIBTORCH_STRINGS, /* List[str] */
    LIBTORCH_LIST,    /* List[Tensor]; arguments only */
    LIBTORCH_DICT,    /* Dict[str, Tensor]; arguments only */
    LIBTORCH_OTHER
};

struct libtorch_module; /* a TorchScript file, or a package of AOTInductor, in memory */
struct libtorch_call;   /* arguments and results of one execution */

struct libtorch_argument {
    const char *name;
    const char *type; /* as TorchScript writes it */
    enum libtorch_kind kind;
    bool optional; /* has a default value */
};

/* How a model is executed. */
struct libtorch_mode {
    bool inference; /* inference mode, not only without gradients */
    bool optimizes;
    int profiling, executor, fuser; /* 0 or 1; -1 = unchanged */
};

/* A tensor or list of strings in the result of a model. */
struct libtorch_result {
    enum libtorch_kind kind; /* TENSOR, STRINGS or OTHER */
    const char *key;         /* its key in a dictionary; else NULL */
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    size_t rank;
    const void *data; /* of a tensor */
    bool on_gpu;      /* of the call */
    size_t count;     /* of the strings */
};

/* libtorch_set_threads - how many threads an operation uses, for the whole process. */
void libtorch_set_threads(int count);

/* libtorch_set_interop_threads - how many operations may run in parallel, for the whole process.
 * returns  false if it was fixed before */
bool libtorch_set_interop_threads(int count);

/* libtorch_has_type - true if there are tensors of a data type. */
bool libtorch_has_type(TRITONSERVER_DataType datatype);

enum { LIBTORCH_CPU = -1 }; /* the device of what is not on a GPU */

/* libtorch_prepare - set what PyTorch reads from the environment, and open its part for CUDA if
 * there is a GPU; once, before all else.
 * returns  true if the machine has CUDA's driver */
bool libtorch_prepare(void);

/* libtorch_gpu_absence - why models cannot be on GPUs; NULL = they can. */
const char *libtorch_gpu_absence(void);

/* libtorch_empty_cache - give the memory of GPUs back that PyTorch keeps and does not use.
 * returns  false if this version of PyTorch cannot be asked to */
bool libtorch_empty_cache(void);

/* libtorch_without_cudnn - do not use cuDNN any more, for the whole process. */
void libtorch_without_cudnn(void);

/* libtorch_load - read a file.
 * is_package  it is a package of AOTInductor; else TorchScript
 * device      the GPU that holds the model, or LIBTORCH_CPU
 * ret_module  owned by the caller: libtorch_free
 * errors      INTERNAL, with PyTorch's message */
TRITONSERVER_Error *libtorch_load(const char *path, bool is_package, bool inference, int32_t device,
                                  struct libtorch_module **ret_module);

/* libtorch_free - NULL is allowed; no call may be left. */
void libtorch_free(struct libtorch_module *module);

/* libtorch_arguments - the arguments of the model's method `forward`; of a package, the tensors
 * in them.
 * ret_list  owned by the module
 * returns   their number */
size_t libtorch_arguments(const struct libtorch_module *module,
                          const struct libtorch_argument **ret_list);

/* libtorch_results - how many tensors and lists of strings `forward` returns.
 * ret_keyed  whether some may be in a dictionary
 * - 1 if only a call can tell */
int64_t libtorch_results(const struct libtorch_module *module, bool *ret_keyed);

/* libtorch_result_index - find a result of a package by its name.
 * returns  -1 if there is none, or if it is TorchScript */
int64_t libtorch_result_index(const struct libtorch_module *module, const char *name);

/* libtorch_call_new - make an object for executions.
 * ret_call  owned by the caller: libtorch_call_free; keeps pointing to the module */
TRITONSERVER_Error *libtorch_call_new(struct libtorch_module *module,
                                      struct libtorch_call **ret_call);

/* libtorch_call_free - NULL is allowed. */
void libtorch_call_free(struct libtorch_call *call);

/* libtorch_call_begin - begin an execution with the first `count` arguments of the model.
 * stream  of a module on a GPU: everything is queued there, also copies of the caller's; else
 *         ignored */
TRITONSERVER_Error *libtorch_call_begin(struct libtorch_call *call, size_t count, void *stream);

/* libtorch_call_room - get memory of the module's GPU until the call has ended.
 * errors  INTERNAL, with PyTorch's message if memory is spent */
TRITONSERVER_Error *libtorch_call_room(struct libtorch_call *call, uint64_t size, void **ret);

/* libtorch_call_tensor - set an argument, or the next element of a list argument.
 * key     of a dictionary's element; else NULL
 * on_gpu  the data lie on the module's GPU
 * data    read in place until the call has ended, unless the model may keep or change it */
TRITONSERVER_Error *libtorch_call_tensor(struct libtorch_call *call, size_t argument,
                                         const char *key, TRITONSERVER_DataType datatype,
                                         const int64_t *shape, size_t rank, bool on_gpu,
                                         const void *data);

/* libtorch_call_string - append a string to an argument that is a list of strings. */
TRITONSERVER_Error *libtorch_call_string(struct libtorch_call *call, size_t argument,
                                         const char *text, size_t length);

/* libtorch_call_run - execute the model; on a GPU, queue it.
 * errors   INTERNAL, with PyTorch's message; or the result is nested too deep, or too large */
TRITONSERVER_Error *libtorch_call_run(struct libtorch_call *call, const struct libtorch_mode *mode);

/* libtorch_call_count - the number of results: all tensors and lists of strings, at any depth,
 * in order. */
size_t libtorch_call_count(const struct libtorch_call *call);

/* libtorch_call_key - the key of a result in a dictionary, or NULL. */
const char *libtorch_call_key(const struct libtorch_call *call, size_t index);

/* libtorch_call_check_names - refuse two results of one name: their keys, or OUTPUT__<index>. */
TRITONSERVER_Error *libtorch_call_check_names(const struct libtorch_call *call);

/* libtorch_call_result - get a result; it is valid until the call has ended. */
TRITONSERVER_Error *libtorch_call_result(struct libtorch_call *call, size_t index,
                                         struct libtorch_result *ret_result);

/* libtorch_call_result_string - get one string of a result. */
void libtorch_call_result_string(const struct libtorch_call *call, size_t index, size_t at,
                                 const char **ret_text, size_t *ret_length);

/* libtorch_call_end - release arguments and results. */
void libtorch_call_end(struct libtorch_call *call);

#ifdef __cplusplus
}
#endif
