#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

/* PyTorch's runtime, which is C++, for the rest of the backend, which is C: no exception leaves
 * it. */

#ifdef __cplusplus
extern "C" {
#endif

/* What an argument or a result of a model is. */
enum libtorch_kind {
    LIBTORCH_TENSOR,
    LIBTORCH_NUMBER,  /* int, float or bool; arguments only: made from a tensor of one element */
    LIBTORCH_STRINGS, /* List[str] */
    LIBTORCH_LIST,    /* List[Tensor]; arguments only */
    LIBTORCH_DICT,    /* Dict[str, Tensor]; arguments only */
    LIBTORCH_OTHER
};

struct libtorch_module; /* a TorchScript file in memory */
struct libtorch_call;   /* arguments and results of one execution at a time */

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
    int profiling, executor, fuser; /* 0 or 1; -1 leaves what is */
};

/* One tensor or list of strings of what a model gave back. */
struct libtorch_result {
    enum libtorch_kind kind; /* TENSOR, STRINGS or OTHER */
    const char *key;         /* in a dictionary; else NULL */
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    size_t rank;
    const void *data; /* of a tensor */
    size_t count;     /* of the strings */
};

/* libtorch_set_threads - how many threads an operation uses; counts for the whole process. */
void libtorch_set_threads(int count);

/* libtorch_set_interop_threads - how many operations may run beside each other; counts for the
 * whole process.
 * returns  false when that was settled before */
bool libtorch_set_interop_threads(int count);

/* libtorch_has_type - whether there are tensors of a data type. */
bool libtorch_has_type(TRITONSERVER_DataType datatype);

/* libtorch_load - read a TorchScript file.
 * ret_module  owned by the caller: libtorch_free
 * errors      INTERNAL, with what PyTorch says */
TRITONSERVER_Error *libtorch_load(const char *path, bool inference,
                                  struct libtorch_module **ret_module);

/* libtorch_free - NULL is allowed; no call may be left. */
void libtorch_free(struct libtorch_module *module);

/* libtorch_arguments - those of the model's method `forward`.
 * ret_list  owned by the module
 * returns   how many there are */
size_t libtorch_arguments(const struct libtorch_module *module,
                          const struct libtorch_argument **ret_list);

/* libtorch_results - how many tensors and lists of strings `forward` gives back.
 * ret_keyed  whether some may be in a dictionary
 * returns    -1 when only a call can tell */
int64_t libtorch_results(const struct libtorch_module *module, bool *ret_keyed);

/* libtorch_call_new - make room for executions.
 * ret_call  owned by the caller: libtorch_call_free; keeps pointing to the module */
TRITONSERVER_Error *libtorch_call_new(struct libtorch_module *module,
                                      struct libtorch_call **ret_call);

/* libtorch_call_free - NULL is allowed. */
void libtorch_call_free(struct libtorch_call *call);

/* libtorch_call_begin - start afresh, with the first `count` arguments of the model. */
TRITONSERVER_Error *libtorch_call_begin(struct libtorch_call *call, size_t count);

/* libtorch_call_tensor - give an argument, or the next element of one that is a list.
 * key   of a dictionary's element; else NULL
 * data  read in place until the call has ended, unless the model may keep or change it */
TRITONSERVER_Error *libtorch_call_tensor(struct libtorch_call *call, size_t argument,
                                         const char *key, TRITONSERVER_DataType datatype,
                                         const int64_t *shape, size_t rank, const void *data);

/* libtorch_call_string - append a string to an argument that is a list of strings. */
TRITONSERVER_Error *libtorch_call_string(struct libtorch_call *call, size_t argument,
                                         const char *text, size_t length);

/* libtorch_call_run - execute the model.
 * errors   INTERNAL, with what PyTorch says */
TRITONSERVER_Error *libtorch_call_run(struct libtorch_call *call, const struct libtorch_mode *mode);

/* libtorch_call_count - how many results there are: tensors and lists of strings, wherever they
 * stand, in the order in which they stand. */
size_t libtorch_call_count(const struct libtorch_call *call);

/* libtorch_call_key - the key that a result has in a dictionary, or NULL. */
const char *libtorch_call_key(const struct libtorch_call *call, size_t index);

/* libtorch_call_result - look at a result; what is shown lasts until the call has ended. */
TRITONSERVER_Error *libtorch_call_result(struct libtorch_call *call, size_t index,
                                         struct libtorch_result *ret_result);

/* libtorch_call_result_string - one string of a result. */
void libtorch_call_result_string(const struct libtorch_call *call, size_t index, size_t at,
                                 const char **ret_text, size_t *ret_length);

/* libtorch_call_end - let go of arguments and results. */
void libtorch_call_end(struct libtorch_call *call);

#ifdef __cplusplus
}
#endif
