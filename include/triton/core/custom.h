#ifndef NEREID_TRITON_CORE_CUSTOM_H
#define NEREID_TRITON_CORE_CUSTOM_H
/* The interface of custom backends of the first generation: what a shared library exports to
 * serve a model whose configuration says platform: "custom". The server opens
 * MODEL/VERSION/libcustom.so (default_model_filename names another) when the version is loaded
 * and closes it when the version is unloaded. New backends are better written against
 * tritonbackend.h.
 *
 * A library exports CustomInitialize, CustomFinalize, CustomErrorString, and one of two forms of
 * execution. CustomVersion tells which one; a library without it has version 1:
 *   1  CustomExecute, all tensors in system memory
 *   2  CustomExecuteV2, which also says where tensors lie
 *
 * Every instance of the model has a context of its own. Calls for one context come one at a
 * time, not always from the same thread. An int that is returned is 0 for success, else an error
 * of the library's own choice, for which CustomErrorString has the words. */
#include <stddef.h>
#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef _MSC_VER
#define TRTIS_CUSTOM_EXPORT __declspec(dllexport)
#else
#define TRTIS_CUSTOM_EXPORT __attribute__((visibility("default")))
#endif

/* gpu_device_id of an instance that runs on the CPU. */
#define CUSTOM_NO_GPU_DEVICE -1

/* Length of server_parameters: the values of CustomServerParameter. */
#define CUSTOM_SERVER_PARAMETER_CNT 2

/* Where a tensor's bytes lie. */
typedef enum custom_memorytype_enum {
    CUSTOM_MEMORY_CPU,
    CUSTOM_MEMORY_GPU,
    CUSTOM_MEMORY_CPU_PINNED
} CustomMemoryType;

/* Places in server_parameters. */
typedef enum custom_serverparamkind_enum {
    INFERENCE_SERVER_VERSION = 0, /* the version of the server, e.g. "1.2.3" */
    MODEL_REPOSITORY_PATH = 1     /* absolute path of the repository that the model lies in */
} CustomServerParameter;

/* What CustomInitialize is told. All of it belongs to the server and ends with the call. */
typedef struct custom_initdata_struct {
    const char *instance_name; /* unique in the server */
    /* the ModelConfig of the model, in the wire format of protobuf */
    const char *serialized_model_config;
    size_t serialized_model_config_size; /* bytes */
    int gpu_device_id;                   /* or CUSTOM_NO_GPU_DEVICE */
    size_t server_parameter_cnt;
    const char **server_parameters; /* by CustomServerParameter */
} CustomInitializeData;

/* One request of a batch. All but error_code is the server's, and ends with the call. */
typedef struct custom_payload_struct {
    uint32_t batch_size; /* rows; 1 for a model that does not batch */
    uint32_t input_cnt;
    const char **input_names;
    const size_t *input_shape_dim_cnts; /* the rank of each input, without the batch dimension */
    const int64_t **input_shape_dims;   /* the shape of each, without the batch dimension */
    uint32_t output_cnt;                /* outputs that are wanted; may be 0 */
    const char **required_output_names;
    void *input_context;  /* for the function that gives inputs */
    void *output_context; /* for the function that takes outputs */
    int error_code;       /* 0 when execution begins; else this request fails, the others do not */
} CustomPayload;

/* CustomGetNextInputFn_t - the next piece of an input; the pieces in their order are the tensor.
 * Not thread safe.
 * content            set to the piece; NULL when there are no more
 * content_byte_size  in: the largest size that is expected, a hint; out: bytes of the piece
 * returns            false for an error, such as a name that is no input */
typedef bool (*CustomGetNextInputFn_t)(void *input_context, const char *name, const void **content,
                                       uint64_t *content_byte_size);

/* CustomGetOutputFn_t - say which shape an output has, and get the memory that it shall be
 * written to. Once an output. Not thread safe.
 * shape_dims         with the batch dimension first where the model batches
 * content_byte_size  bytes of the whole tensor
 * content            set to memory of that size; NULL, with true: nobody wants this output, go
 *                    on with the next
 * returns            false for an error */
typedef bool (*CustomGetOutputFn_t)(void *output_context, const char *name, size_t shape_dim_cnt,
                                    int64_t *shape_dims, uint64_t content_byte_size,
                                    void **content);

/* The same for version 2.
 * memory_type, memory_type_id  in: where the library would like the bytes; out: where they are */
typedef bool (*CustomGetNextInputV2Fn_t)(void *input_context, const char *name,
                                         const void **content, uint64_t *content_byte_size,
                                         CustomMemoryType *memory_type, int64_t *memory_type_id);
typedef bool (*CustomGetOutputV2Fn_t)(void *output_context, const char *name, size_t shape_dim_cnt,
                                      int64_t *shape_dims, uint64_t content_byte_size,
                                      void **content, CustomMemoryType *memory_type,
                                      int64_t *memory_type_id);

/* Types of the functions below. */
typedef uint32_t (*CustomVersionFn_t)(void);
typedef int (*CustomInitializeFn_t)(const CustomInitializeData *, void **);
typedef int (*CustomFinalizeFn_t)(void *);
typedef char *(*CustomErrorStringFn_t)(void *, int);
typedef int (*CustomExecuteFn_t)(void *, uint32_t, CustomPayload *, CustomGetNextInputFn_t,
                                 CustomGetOutputFn_t);
typedef int (*CustomExecuteV2Fn_t)(void *, uint32_t, CustomPayload *, CustomGetNextInputV2Fn_t,
                                   CustomGetOutputV2Fn_t);

/* CustomVersion - 1 or 2; the server refuses a library that says anything else. May be left out:
 * 1. */
TRTIS_CUSTOM_EXPORT uint32_t CustomVersion(void);

/* CustomInitialize - make the context of one instance.
 * custom_context  the library's own; NULL when it needs none. Set it also when returning an
 *                 error, so that CustomErrorString can be asked; it is then given to
 *                 CustomFinalize */
TRTIS_CUSTOM_EXPORT int CustomInitialize(const CustomInitializeData *data, void **custom_context);

/* CustomFinalize - the instance is gone; free what belongs to it. */
TRTIS_CUSTOM_EXPORT int CustomFinalize(void *custom_context);

/* CustomErrorString - the words for an error code, which stay the library's; NULL when there are
 * none. */
TRTIS_CUSTOM_EXPORT const char *CustomErrorString(void *custom_context, int errcode);

/* CustomExecute, CustomExecuteV2 - run a batch of requests. An error that is returned fails all
 * of them; error_code of a payload fails that one. Outputs that no memory was asked for are
 * missing from the answer. */
TRTIS_CUSTOM_EXPORT int CustomExecute(void *custom_context, uint32_t payload_cnt,
                                      CustomPayload *payloads, CustomGetNextInputFn_t input_fn,
                                      CustomGetOutputFn_t output_fn);
TRTIS_CUSTOM_EXPORT int CustomExecuteV2(void *custom_context, uint32_t payload_cnt,
                                        CustomPayload *payloads, CustomGetNextInputV2Fn_t input_fn,
                                        CustomGetOutputV2Fn_t output_fn);

#ifdef __cplusplus
}
#endif
#endif
