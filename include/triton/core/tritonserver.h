#ifndef TRITONSERVER_H
#define TRITONSERVER_H

/* The server's C interface: what an application calls to embed the server, and what plug-ins
 * share with it. API version 1.34.
 *
 * Rules that hold everywhere and are not repeated below:
 * - A function that returns TRITONSERVER_Error * returns NULL for success. An error belongs to the
 *   caller, who frees it with TRITONSERVER_ErrorDelete; on error no output is written.
 * - A string or array that comes back is borrowed: it lives as long as the object it came from.
 *   Strings that go in are copied unless the text says otherwise.
 * - "name" strings are UTF-8 and NUL-terminated. Sizes are bytes. Shapes are int64 counts of
 *   elements; -1 stands for "any" where a configuration is meant.
 * - Different objects may be used from different threads at the same time. One object is used by
 *   one thread at a time, except TRITONSERVER_Server, TRITONSERVER_Metric and
 *   TRITONSERVER_MetricFamily, which any number of threads may use.
 * - A NULL handle gives TRITONSERVER_ERROR_INVALID_ARG where an error can be returned at all; the
 *   functions that delete an object of the caller's take it for nothing. So does any other argument
 *   that cannot be: what a function's "errors" name comes besides. Only where a result goes
 *   ("out") is not checked: such a pointer must point to memory, unless the text allows NULL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRITONSERVER_DECLSPEC __attribute__((visibility("default")))
#else
#define TRITONSERVER_DECLSPEC
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TRITONSERVER_BufferAttributes TRITONSERVER_BufferAttributes;
typedef struct TRITONSERVER_Error TRITONSERVER_Error;
typedef struct TRITONSERVER_InferenceRequest TRITONSERVER_InferenceRequest;
typedef struct TRITONSERVER_InferenceResponse TRITONSERVER_InferenceResponse;
typedef struct TRITONSERVER_InferenceTrace TRITONSERVER_InferenceTrace;
typedef struct TRITONSERVER_Message TRITONSERVER_Message;
typedef struct TRITONSERVER_Metric TRITONSERVER_Metric;
typedef struct TRITONSERVER_MetricArgs TRITONSERVER_MetricArgs;
typedef struct TRITONSERVER_MetricFamily TRITONSERVER_MetricFamily;
typedef struct TRITONSERVER_Metrics TRITONSERVER_Metrics;
typedef struct TRITONSERVER_Parameter TRITONSERVER_Parameter;
typedef struct TRITONSERVER_ResponseAllocator TRITONSERVER_ResponseAllocator;
typedef struct TRITONSERVER_Server TRITONSERVER_Server;
typedef struct TRITONSERVER_ServerOptions TRITONSERVER_ServerOptions;

/* ---- Version ---- */

/* Minor grows when something is added, major when something that worked changes. A caller needs
 * the same major and at least the minor that it was compiled with. */
#define TRITONSERVER_API_VERSION_MAJOR 1
#define TRITONSERVER_API_VERSION_MINOR 34

/* TRITONSERVER_ApiVersion - tell which interface version the loaded library speaks.
 * major, minor  out */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ApiVersion(uint32_t *major, uint32_t *minor);

/* ---- Data types, memory, parameters, instance groups ---- */

/* Element types of tensors. BYTES is a sequence of elements, each a 4-byte little-endian length
 * followed by that many bytes. */
typedef enum TRITONSERVER_datatype_enum {
    TRITONSERVER_TYPE_INVALID = 0,
    TRITONSERVER_TYPE_BOOL = 1,
    TRITONSERVER_TYPE_UINT8 = 2,
    TRITONSERVER_TYPE_UINT16 = 3,
    TRITONSERVER_TYPE_UINT32 = 4,
    TRITONSERVER_TYPE_UINT64 = 5,
    TRITONSERVER_TYPE_INT8 = 6,
    TRITONSERVER_TYPE_INT16 = 7,
    TRITONSERVER_TYPE_INT32 = 8,
    TRITONSERVER_TYPE_INT64 = 9,
    TRITONSERVER_TYPE_FP16 = 10,
    TRITONSERVER_TYPE_FP32 = 11,
    TRITONSERVER_TYPE_FP64 = 12,
    TRITONSERVER_TYPE_BYTES = 13,
    TRITONSERVER_TYPE_BF16 = 14
} TRITONSERVER_DataType;

/* TRITONSERVER_DataTypeString - name a data type as the protocols spell it: "BOOL", "UINT8", ...,
 *   "BYTES", "BF16".
 * returns  a static string; "<invalid>" for anything else */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype);

/* TRITONSERVER_StringToDataType - read a protocol spelling.
 * returns  TRITONSERVER_TYPE_INVALID when the string names no type */
TRITONSERVER_DECLSPEC TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char *dtype);

/* TRITONSERVER_DataTypeByteSize - give the size of one element.
 * returns  bytes; 0 for BYTES, whose elements vary, and for INVALID */
TRITONSERVER_DECLSPEC uint32_t TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype);

/* Where a buffer lies. The memory type id beside it is the GPU's number; 0 for CPU memory. */
typedef enum TRITONSERVER_memorytype_enum {
    TRITONSERVER_MEMORY_CPU = 0,
    TRITONSERVER_MEMORY_CPU_PINNED = 1, /* page-locked for transfers to a GPU */
    TRITONSERVER_MEMORY_GPU = 2
} TRITONSERVER_MemoryType;

/* TRITONSERVER_MemoryTypeString - name a memory type: "CPU", "CPU_PINNED" or "GPU".
 * returns  a static string; "<invalid>" for anything else */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype);

typedef enum TRITONSERVER_parametertype_enum {
    TRITONSERVER_PARAMETER_STRING = 0, /* const char * */
    TRITONSERVER_PARAMETER_INT = 1,    /* int64_t * */
    TRITONSERVER_PARAMETER_BOOL = 2,   /* bool * */
    TRITONSERVER_PARAMETER_DOUBLE = 3, /* double * */
    TRITONSERVER_PARAMETER_BYTES = 4   /* a pointer and a size; TRITONSERVER_ParameterBytesNew */
} TRITONSERVER_ParameterType;

/* TRITONSERVER_ParameterTypeString - name a parameter type: "STRING", "INT", "BOOL", "DOUBLE" or
 *   "BYTES".
 * returns  a static string; "<invalid>" for anything else */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_ParameterTypeString(TRITONSERVER_ParameterType paramtype);

/* TRITONSERVER_ParameterNew - make a named value of any type but BYTES.
 * value    points at the value, as the comments of the enum say; copied
 * returns  a parameter owned by the caller; NULL for type BYTES */
TRITONSERVER_DECLSPEC TRITONSERVER_Parameter *
TRITONSERVER_ParameterNew(const char *name, const TRITONSERVER_ParameterType type,
                          const void *value);

/* TRITONSERVER_ParameterBytesNew - make a named value that refers to bytes of the caller's.
 * byte_ptr  borrowed until the parameter is deleted
 * size      bytes
 * returns   a parameter owned by the caller */
TRITONSERVER_DECLSPEC TRITONSERVER_Parameter *
TRITONSERVER_ParameterBytesNew(const char *name, const void *byte_ptr, const uint64_t size);

/* TRITONSERVER_ParameterDelete - free a parameter. */
TRITONSERVER_DECLSPEC void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter);

typedef enum TRITONSERVER_instancegroupkind_enum {
    TRITONSERVER_INSTANCEGROUPKIND_AUTO = 0,
    TRITONSERVER_INSTANCEGROUPKIND_CPU = 1,
    TRITONSERVER_INSTANCEGROUPKIND_GPU = 2,
    TRITONSERVER_INSTANCEGROUPKIND_MODEL = 3 /* the backend decides */
} TRITONSERVER_InstanceGroupKind;

/* TRITONSERVER_InstanceGroupKindString - name a kind: "AUTO", "CPU", "GPU" or "MODEL".
 * returns  a static string; "<invalid>" for anything else */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind);

/* ---- Logging ---- */

typedef enum TRITONSERVER_loglevel_enum {
    TRITONSERVER_LOG_INFO = 0,
    TRITONSERVER_LOG_WARN = 1,
    TRITONSERVER_LOG_ERROR = 2,
    TRITONSERVER_LOG_VERBOSE = 3
} TRITONSERVER_LogLevel;

typedef enum TRITONSERVER_logformat_enum {
    TRITONSERVER_LOG_DEFAULT = 0, /* I0520 20:03:25.829575 3355 file.c:441] "text" */
    TRITONSERVER_LOG_ISO8601 = 1  /* 2024-05-20T20:03:26Z I 3415 file.c:441] "text" */
} TRITONSERVER_LogFormat;

/* TRITONSERVER_LogIsEnabled - ask whether messages of a level are written at present.
 * thread  any */
TRITONSERVER_DECLSPEC bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level);

/* TRITONSERVER_LogMessage - write a line to the server's log if its level is enabled.
 * filename, line  where the message comes from
 * thread          any */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level,
                                                                  const char *filename,
                                                                  const int line, const char *msg);

/* ---- Errors ---- */

typedef enum TRITONSERVER_errorcode_enum {
    TRITONSERVER_ERROR_UNKNOWN = 0,
    TRITONSERVER_ERROR_INTERNAL = 1,
    TRITONSERVER_ERROR_NOT_FOUND = 2,
    TRITONSERVER_ERROR_INVALID_ARG = 3,
    TRITONSERVER_ERROR_UNAVAILABLE = 4,
    TRITONSERVER_ERROR_UNSUPPORTED = 5,
    TRITONSERVER_ERROR_ALREADY_EXISTS = 6,
    TRITONSERVER_ERROR_CANCELLED = 7
} TRITONSERVER_Error_Code;

/* TRITONSERVER_ErrorNew - make an error.
 * msg      for people; copied
 * returns  an error owned by the caller */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code,
                                                                const char *msg);

/* TRITONSERVER_ErrorDelete - free an error; NULL is allowed. */
TRITONSERVER_DECLSPEC void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error);

/* TRITONSERVER_ErrorCode - give an error's code. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error *error);

/* TRITONSERVER_ErrorCodeString - name an error's code: "Unknown", "Internal", "Not found",
 *   "Invalid argument", "Unavailable", "Unsupported", "Already exists" or "Cancelled".
 * returns  borrowed from the error */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ErrorCodeString(TRITONSERVER_Error *error);

/* TRITONSERVER_ErrorMessage - give an error's text.
 * returns  borrowed from the error */
TRITONSERVER_DECLSPEC const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error);

/* ---- Response allocators ---- */

/* An application gives the server memory for output tensors through four or five callbacks. For
 * each response the server calls start (if set), then alloc once an output; release comes once a
 * buffer when the response is deleted. Callbacks run on whichever thread produces the response,
 * several at a time for different requests: state lives in `userp`, one per request. */

/* TRITONSERVER_ResponseAllocatorAllocFn_t - provide the buffer of one output tensor.
 * tensor_name             borrowed for the call
 * byte_size               bytes wanted; can be 0
 * memory_type, *_id       where the server would like it
 * userp                   response_allocator_userp of the request
 * buffer                  out: the memory, or NULL for 0 bytes
 * buffer_userp            out: comes back in release and in TRITONSERVER_InferenceResponseOutput
 * actual_memory_type, *_id  out: where it really lies */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorAllocFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name, size_t byte_size,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual_memory_type,
    int64_t *actual_memory_type_id);

/* TRITONSERVER_ResponseAllocatorBufferAttributesFn_t - describe a buffer that alloc has just
 *   provided; called straight after alloc if set.
 * buffer_attributes  filled in by the callback
 * buffer_userp       as alloc set it */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorBufferAttributesFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor_name,
    TRITONSERVER_BufferAttributes *buffer_attributes, void *userp, void *buffer_userp);

/* TRITONSERVER_ResponseAllocatorQueryFn_t - say beforehand where alloc would place a tensor; a
 *   hint, not a promise.
 * tensor_name  NULL when not known yet
 * byte_size    NULL when not known yet
 * memory_type, memory_type_id  in: what the server prefers; out: what alloc would choose */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorQueryFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *userp, const char *tensor_name,
    size_t *byte_size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id);

/* TRITONSERVER_ResponseAllocatorReleaseFn_t - take a buffer back.
 * buffer, buffer_userp, byte_size, memory_type, memory_type_id  as alloc gave them
 * errors  logged; the buffer is not offered again */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorReleaseFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *buffer, void *buffer_userp, size_t byte_size,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id);

/* TRITONSERVER_ResponseAllocatorStartFn_t - learn that the allocations which follow are for a new
 *   response of this request. */
typedef TRITONSERVER_Error *(*TRITONSERVER_ResponseAllocatorStartFn_t)(
    TRITONSERVER_ResponseAllocator *allocator, void *userp);

/* TRITONSERVER_ResponseAllocatorNew - make an allocator.
 * allocator  out: owned by the caller, must outlive every request that names it
 * alloc_fn, release_fn  required
 * start_fn   NULL when not wanted */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorNew(TRITONSERVER_ResponseAllocator **allocator,
                                  TRITONSERVER_ResponseAllocatorAllocFn_t alloc_fn,
                                  TRITONSERVER_ResponseAllocatorReleaseFn_t release_fn,
                                  TRITONSERVER_ResponseAllocatorStartFn_t start_fn);

/* TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction - add the callback that describes
 *   buffers. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_ResponseAllocatorBufferAttributesFn_t buffer_attributes_fn);

/* TRITONSERVER_ResponseAllocatorSetQueryFunction - add the callback that answers where memory
 *   would lie. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorSetQueryFunction(TRITONSERVER_ResponseAllocator *allocator,
                                               TRITONSERVER_ResponseAllocatorQueryFn_t query_fn);

/* TRITONSERVER_ResponseAllocatorDelete - free an allocator that no request uses any more. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ResponseAllocatorDelete(TRITONSERVER_ResponseAllocator *allocator);

/* ---- Messages ---- */

/* A JSON document. */

/* TRITONSERVER_MessageNewFromSerializedJson - read JSON.
 * message  out: owned by the caller
 * base     byte_size bytes, copied
 * errors   INVALID_ARG or INTERNAL for malformed JSON, with what was wrong */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message, const char *base,
                                          size_t byte_size);

/* TRITONSERVER_MessageDelete - free a message. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message);

/* TRITONSERVER_MessageSerializeToJson - give a message's JSON text.
 * base       out: borrowed from the message; not NUL-terminated by promise
 * byte_size  out: bytes */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message, const char **base,
                                    size_t *byte_size);

/* ---- Metrics of the server ---- */

typedef enum tritonserver_metricformat_enum {
    TRITONSERVER_METRIC_PROMETHEUS = 0 /* text exposition format */
} TRITONSERVER_MetricFormat;

/* TRITONSERVER_MetricsDelete - free a snapshot of the metrics. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricsDelete(TRITONSERVER_Metrics *metrics);

/* TRITONSERVER_MetricsFormatted - render a snapshot.
 * base       out: borrowed from the snapshot
 * byte_size  out: bytes */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricsFormatted(TRITONSERVER_Metrics *metrics, TRITONSERVER_MetricFormat format,
                              const char **base, size_t *byte_size);

/* ---- Tracing ---- */

/* Bits; combine TIMESTAMPS and TENSORS with `|`. MIN and MAX are older names for TIMESTAMPS. */
typedef enum tritonserver_tracelevel_enum {
    TRITONSERVER_TRACE_LEVEL_DISABLED = 0,
    TRITONSERVER_TRACE_LEVEL_MIN = 1,
    TRITONSERVER_TRACE_LEVEL_MAX = 2,
    TRITONSERVER_TRACE_LEVEL_TIMESTAMPS = 0x4,
    TRITONSERVER_TRACE_LEVEL_TENSORS = 0x8
} TRITONSERVER_InferenceTraceLevel;

/* TRITONSERVER_InferenceTraceLevelString - name one level: "DISABLED", "MIN", "MAX", "TIMESTAMPS"
 *   or "TENSORS".
 * returns  a static string; "<unknown>" for anything else */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_InferenceTraceLevel level);

/* Points in a request's life, in order; the tensor activities carry contents. */
typedef enum tritonserver_traceactivity_enum {
    TRITONSERVER_TRACE_REQUEST_START = 0,
    TRITONSERVER_TRACE_QUEUE_START = 1,
    TRITONSERVER_TRACE_COMPUTE_START = 2,
    TRITONSERVER_TRACE_COMPUTE_INPUT_END = 3,
    TRITONSERVER_TRACE_COMPUTE_OUTPUT_START = 4,
    TRITONSERVER_TRACE_COMPUTE_END = 5,
    TRITONSERVER_TRACE_REQUEST_END = 6,
    TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT = 7,
    TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT = 8,
    TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT = 9,
    TRITONSERVER_TRACE_CUSTOM_ACTIVITY = 10
} TRITONSERVER_InferenceTraceActivity;

/* TRITONSERVER_InferenceTraceActivityString - name an activity, without the TRITONSERVER_TRACE_
 *   in front: "REQUEST_START", ...
 * returns  a static string; "<unknown>" for anything else */
TRITONSERVER_DECLSPEC const char *
TRITONSERVER_InferenceTraceActivityString(TRITONSERVER_InferenceTraceActivity activity);

/* TRITONSERVER_InferenceTraceActivityFn_t - receive a time stamp of a trace or of one of its
 *   children.
 * trace         borrowed for the call
 * timestamp_ns  monotonic clock
 * userp         trace_userp of TRITONSERVER_InferenceTraceNew
 * thread        whichever reached that point; must not block */
typedef void (*TRITONSERVER_InferenceTraceActivityFn_t)(
    TRITONSERVER_InferenceTrace *trace, TRITONSERVER_InferenceTraceActivity activity,
    uint64_t timestamp_ns, void *userp);

/* TRITONSERVER_InferenceTraceTensorActivityFn_t - receive the contents of a tensor of a traced
 *   request.
 * base, byte_size, shape, dim_count  borrowed for the call */
typedef void (*TRITONSERVER_InferenceTraceTensorActivityFn_t)(
    TRITONSERVER_InferenceTrace *trace, TRITONSERVER_InferenceTraceActivity activity,
    const char *name, TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count, TRITONSERVER_MemoryType memory_type,
    int64_t memory_type_id, void *userp);

/* TRITONSERVER_InferenceTraceReleaseFn_t - receive a trace when nothing more will be reported on
 *   it; the callee owns it from here on. */
typedef void (*TRITONSERVER_InferenceTraceReleaseFn_t)(TRITONSERVER_InferenceTrace *trace,
                                                       void *userp);

/* TRITONSERVER_InferenceTraceNew - make a trace for one request.
 * trace        out: owned by the caller until TRITONSERVER_ServerInferAsync takes it
 * level        bits of TRITONSERVER_InferenceTraceLevel
 * parent_id    0 for none
 * activity_fn, release_fn  called for this trace and for the children that it spawns
 * trace_userp  handed to both */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp);

/* TRITONSERVER_InferenceTraceTensorNew - make a trace that reports tensors as well; the rest as
 *   TRITONSERVER_InferenceTraceNew. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceTraceTensorNew(
    TRITONSERVER_InferenceTrace **trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp);

/* TRITONSERVER_InferenceTraceReportActivity - report an activity of one's own, as
 *   TRITONSERVER_TRACE_CUSTOM_ACTIVITY.
 * timestamp      ns, monotonic clock
 * activity_name  borrowed for the call */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace *trace, uint64_t timestamp,
                                          const char *activity_name);

/* TRITONSERVER_InferenceTraceDelete - free a trace that the caller owns. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace *trace);

/* TRITONSERVER_InferenceTraceId - give a trace's number, unique within the server. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace *trace, uint64_t *id);

/* TRITONSERVER_InferenceTraceParentId - give the number of a trace's parent; 0 for none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace *trace, uint64_t *parent_id);

/* TRITONSERVER_InferenceTraceModelName - give the name of the model that the traced request runs
 *   on. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace *trace, const char **model_name);

/* TRITONSERVER_InferenceTraceModelVersion - give the version of the model that the traced request
 *   runs on. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace *trace, int64_t *model_version);

/* TRITONSERVER_InferenceTraceRequestId - give the id of the traced request; empty if it has none.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace *trace, const char **request_id);

/* TRITONSERVER_InferenceTraceSpawnChildTrace - make a child with the same level, callbacks and
 *   userp.
 * child_trace  out: owned by the caller until TRITONSERVER_ServerInferAsync takes it */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSpawnChildTrace(TRITONSERVER_InferenceTrace *trace,
                                           TRITONSERVER_InferenceTrace **child_trace);

/* TRITONSERVER_InferenceTraceSetContext - attach the context of an outer trace.
 * trace_context  JSON text; copied */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSetContext(TRITONSERVER_InferenceTrace *trace,
                                      const char *trace_context);

/* TRITONSERVER_InferenceTraceContext - give the context that was attached; empty if none was. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace *trace, const char **trace_context);

/* ---- Inference requests ---- */

/* Bits. A sequence is a series of requests with one correlation id. */
typedef enum tritonserver_requestflag_enum {
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
} TRITONSERVER_RequestFlag;

/* Bits. RESCHEDULE is for backends: the request goes back to its scheduler, and the application's
 * callback does not see it. */
typedef enum tritonserver_requestreleaseflag_enum {
    TRITONSERVER_REQUEST_RELEASE_ALL = 1,
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
} TRITONSERVER_RequestReleaseFlag;

/* Bits. FINAL: no further response comes for the request. */
typedef enum tritonserver_responsecompleteflag_enum {
    TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
} TRITONSERVER_ResponseCompleteFlag;

/* TRITONSERVER_InferenceRequestReleaseFn_t - take a request back from the server, with the input
 *   buffers that were attached to it.
 * flags   bits of TRITONSERVER_RequestReleaseFlag; ownership passes only with RELEASE_ALL
 * userp   request_release_userp
 * thread  whichever released it; not ordered with the response callback */
typedef void (*TRITONSERVER_InferenceRequestReleaseFn_t)(TRITONSERVER_InferenceRequest *request,
                                                         const uint32_t flags, void *userp);

/* TRITONSERVER_InferenceResponseCompleteFn_t - receive a response; the callee owns it.
 * response  NULL when FINAL comes without a response
 * flags     bits of TRITONSERVER_ResponseCompleteFlag
 * userp     response_userp
 * thread    whichever completed it; must not block */
typedef void (*TRITONSERVER_InferenceResponseCompleteFn_t)(TRITONSERVER_InferenceResponse *response,
                                                           const uint32_t flags, void *userp);

/* TRITONSERVER_InferenceRequestNew - make a request for a model.
 * inference_request  out: owned by the caller
 * model_version      a version, or -1 for the one that the model's policy prefers
 * errors  NOT_FOUND for an unknown model or version, UNAVAILABLE for one that is not ready */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestNew(TRITONSERVER_InferenceRequest **inference_request,
                                 TRITONSERVER_Server *server, const char *model_name,
                                 const int64_t model_version);

/* TRITONSERVER_InferenceRequestDelete - free a request that the server does not hold. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestDelete(TRITONSERVER_InferenceRequest *inference_request);

/* TRITONSERVER_InferenceRequestId - give the caller's id of a request; empty if none was set. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestId(TRITONSERVER_InferenceRequest *inference_request, const char **id);

/* TRITONSERVER_InferenceRequestSetId - set the caller's id of a request, which responses repeat.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest *inference_request,
                                   const char *id);

/* TRITONSERVER_InferenceRequestFlags - give the bits of TRITONSERVER_RequestFlag. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestFlags(TRITONSERVER_InferenceRequest *inference_request,
                                   uint32_t *flags);

/* TRITONSERVER_InferenceRequestSetFlags - set the bits of TRITONSERVER_RequestFlag. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetFlags(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t flags);

/* TRITONSERVER_InferenceRequestCorrelationId - give a numeric correlation id; 0 for none.
 * errors  INVALID_ARG when the id is a string */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                           uint64_t *correlation_id);

/* TRITONSERVER_InferenceRequestCorrelationIdString - give a textual correlation id; empty for
 *   none.
 * errors  INVALID_ARG when the id is a number */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCorrelationIdString(TRITONSERVER_InferenceRequest *inference_request,
                                                 const char **correlation_id);

/* TRITONSERVER_InferenceRequestSetCorrelationId - make the request part of the sequence with this
 *   number; 0 for none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetCorrelationId(TRITONSERVER_InferenceRequest *inference_request,
                                              uint64_t correlation_id);

/* TRITONSERVER_InferenceRequestSetCorrelationIdString - make the request part of the sequence
 *   with this name.
 * correlation_id  at most 128 bytes
 * errors  UNSUPPORTED for a longer one */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetCorrelationIdString(
    TRITONSERVER_InferenceRequest *inference_request, const char *correlation_id);

/* TRITONSERVER_InferenceRequestCancel - ask that a running request stop early; nobody promises
 *   that it does.
 * errors  INTERNAL before the first TRITONSERVER_ServerInferAsync
 * thread  any; without effect once the request was released */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestCancel(TRITONSERVER_InferenceRequest *inference_request);

/* TRITONSERVER_InferenceRequestIsCancelled - ask whether cancelling was asked for while the
 *   request was last in flight.
 * errors  INTERNAL before the first TRITONSERVER_ServerInferAsync
 * thread  any */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestIsCancelled(TRITONSERVER_InferenceRequest *inference_request,
                                         bool *is_cancelled);

/* TRITONSERVER_InferenceRequestPriority - give the priority as 32 bits; use
 *   TRITONSERVER_InferenceRequestPriorityUInt64. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriority(TRITONSERVER_InferenceRequest *inference_request,
                                      uint32_t *priority);

/* TRITONSERVER_InferenceRequestPriorityUInt64 - give the priority; 0 means the model's default, 1
 *   is the highest. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                            uint64_t *priority);

/* TRITONSERVER_InferenceRequestSetPriority - set the priority as 32 bits; use
 *   TRITONSERVER_InferenceRequestSetPriorityUInt64. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriority(TRITONSERVER_InferenceRequest *inference_request,
                                         uint32_t priority);

/* TRITONSERVER_InferenceRequestSetPriorityUInt64 - set the priority; 0 means the model's default,
 *   1 is the highest. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetPriorityUInt64(TRITONSERVER_InferenceRequest *inference_request,
                                               uint64_t priority);

/* TRITONSERVER_InferenceRequestTimeoutMicroseconds - give the time the request may take, in
 *   microseconds; 0 for no limit. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestTimeoutMicroseconds(TRITONSERVER_InferenceRequest *inference_request,
                                                 uint64_t *timeout_us);

/* TRITONSERVER_InferenceRequestSetTimeoutMicroseconds - set the time the request may take, in
 *   microseconds; 0 for no limit. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(
    TRITONSERVER_InferenceRequest *inference_request, uint64_t timeout_us);

/* TRITONSERVER_InferenceRequestAddInput - declare an input tensor.
 * shape      dim_count sizes, copied
 * dim_count  0 for a scalar
 * errors     INVALID_ARG when the name is taken */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddInput(TRITONSERVER_InferenceRequest *inference_request,
                                      const char *name, const TRITONSERVER_DataType datatype,
                                      const int64_t *shape, uint64_t dim_count);

/* TRITONSERVER_InferenceRequestAddRawInput - declare the only input, its real name, type and
 *   shape being taken from the model's configuration.
 * name    how this request's other calls refer to it
 * errors  INVALID_ARG when there is another input */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRawInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name);

/* TRITONSERVER_InferenceRequestRemoveInput - drop an input and give its buffers back. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveInput(TRITONSERVER_InferenceRequest *inference_request,
                                         const char *name);

/* TRITONSERVER_InferenceRequestRemoveAllInputs - drop all inputs and give their buffers back. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputs(TRITONSERVER_InferenceRequest *inference_request);

/* TRITONSERVER_InferenceRequestAppendInputData - attach a buffer after those that the input has
 *   already.
 * base       byte_size bytes, borrowed until the request is released and the input dropped
 * errors     UNSUPPORTED for memory of a GPU */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id);

/* TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy - attach a buffer that only
 *   instances of one host policy read; others read the plain buffers.
 * base       byte_size bytes, borrowed until the request is released and the input dropped
 * errors     UNSUPPORTED for memory of a GPU */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    size_t byte_size, TRITONSERVER_MemoryType memory_type, int64_t memory_type_id,
    const char *host_policy_name);

/* TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes - attach a buffer whose size
 *   and place an attributes object gives.
 * base               borrowed until the request is released and the input dropped
 * buffer_attributes  copied
 * errors     UNSUPPORTED for memory of a GPU */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *inference_request, const char *name, const void *base,
    TRITONSERVER_BufferAttributes *buffer_attributes);

/* TRITONSERVER_InferenceRequestRemoveAllInputData - detach all buffers of an input, the tensor
 *   staying declared. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveAllInputData(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name);

/* TRITONSERVER_InferenceRequestAddRequestedOutput - ask for one output; a request that asks for
 *   none gets all. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestAddRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                const char *name);

/* TRITONSERVER_InferenceRequestRemoveRequestedOutput - withdraw the wish for one output. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestRemoveRequestedOutput(TRITONSERVER_InferenceRequest *inference_request,
                                                   const char *name);

/* TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs - withdraw all wishes: all outputs come.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
    TRITONSERVER_InferenceRequest *inference_request);

/* TRITONSERVER_InferenceRequestSetReleaseCallback - say who takes the request back; required
 *   before TRITONSERVER_ServerInferAsync. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetReleaseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_InferenceRequestReleaseFn_t request_release_fn, void *request_release_userp);

/* TRITONSERVER_InferenceRequestSetResponseCallback - say where responses go and who allocates
 *   their tensors; required before TRITONSERVER_ServerInferAsync.
 * response_allocator  borrowed; both userp are used until the FINAL response */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *inference_request,
    TRITONSERVER_ResponseAllocator *response_allocator, void *response_allocator_userp,
    TRITONSERVER_InferenceResponseCompleteFn_t response_fn, void *response_userp);

/* TRITONSERVER_InferenceRequestSetStringParameter - attach a string parameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetStringParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const char *value);

/* TRITONSERVER_InferenceRequestSetIntParameter - attach an integer parameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetIntParameter(TRITONSERVER_InferenceRequest *request,
                                             const char *key, const int64_t value);

/* TRITONSERVER_InferenceRequestSetBoolParameter - attach a boolean parameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetBoolParameter(TRITONSERVER_InferenceRequest *request,
                                              const char *key, const bool value);

/* TRITONSERVER_InferenceRequestSetDoubleParameter - attach a floating point parameter. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceRequestSetDoubleParameter(TRITONSERVER_InferenceRequest *request,
                                                const char *key, const double value);

/* ---- Inference responses ---- */

/* TRITONSERVER_InferenceResponseDelete - free a response; its buffers go back through the
 *   allocator's release callback. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseDelete(TRITONSERVER_InferenceResponse *inference_response);

/* TRITONSERVER_InferenceResponseError - give the error that a response stands for.
 * returns  NULL for a good response; otherwise an error that the response owns;
 *   TRITONSERVER_ErrorDelete has no effect on it */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseError(TRITONSERVER_InferenceResponse *inference_response);

/* TRITONSERVER_InferenceResponseModel - tell which model and version answered. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseModel(TRITONSERVER_InferenceResponse *inference_response,
                                    const char **model_name, int64_t *model_version);

/* TRITONSERVER_InferenceResponseId - give the id of the request that is answered. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseId(TRITONSERVER_InferenceResponse *inference_response,
                                 const char **request_id);

/* TRITONSERVER_InferenceResponseParameterCount - count a response's parameters. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameterCount(TRITONSERVER_InferenceResponse *inference_response,
                                             uint32_t *count);

/* TRITONSERVER_InferenceResponseParameter - give a response's parameter.
 * index   below the count
 * vvalue  out: points as TRITONSERVER_ParameterType says (a STRING is the pointer itself) */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameter(TRITONSERVER_InferenceResponse *inference_response,
                                        const uint32_t index, const char **name,
                                        TRITONSERVER_ParameterType *type, const void **vvalue);

/* TRITONSERVER_InferenceResponseOutputCount - count a response's outputs. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputCount(TRITONSERVER_InferenceResponse *inference_response,
                                          uint32_t *count);

/* TRITONSERVER_InferenceResponseOutput - give an output tensor.
 * index             below the count
 * shape, dim_count  out
 * base, byte_size   out: the contents
 * memory_type, *_id  out: where they lie
 * userp             out: buffer_userp of the allocator */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape, uint64_t *dim_count, const void **base,
    size_t *byte_size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id, void **userp);

/* TRITONSERVER_InferenceResponseOutputClassificationLabel - give the label of a class of an
 *   output, from the label file that the configuration names.
 * label  out: NULL when there is none */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const size_t class_index, const char **label);

/* ---- Buffer attributes ---- */

/* Size, place and, for GPU memory, the handle to share it between processes. */

/* TRITONSERVER_BufferAttributesNew - make an empty description: CPU memory, 0 bytes, no handle.
 * buffer_attributes  out: owned by the caller */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **buffer_attributes);

/* TRITONSERVER_BufferAttributesDelete - free a description. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *buffer_attributes);

/* TRITONSERVER_BufferAttributesSetMemoryTypeId - set the number of the device. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                             int64_t memory_type_id);

/* TRITONSERVER_BufferAttributesSetMemoryType - set the kind of memory. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           TRITONSERVER_MemoryType memory_type);

/* TRITONSERVER_BufferAttributesSetCudaIpcHandle - set the handle for other processes.
 * cuda_ipc_handle  a cudaIpcMemHandle_t, borrowed */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                              void *cuda_ipc_handle);

/* TRITONSERVER_BufferAttributesSetByteSize - set the size in bytes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                         size_t byte_size);

/* TRITONSERVER_BufferAttributesMemoryTypeId - give the number of the device. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryTypeId(TRITONSERVER_BufferAttributes *buffer_attributes,
                                          int64_t *memory_type_id);

/* TRITONSERVER_BufferAttributesMemoryType - give the kind of memory. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryType(TRITONSERVER_BufferAttributes *buffer_attributes,
                                        TRITONSERVER_MemoryType *memory_type);

/* TRITONSERVER_BufferAttributesCudaIpcHandle - give the handle for other processes; NULL if there
 *   is none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesCudaIpcHandle(TRITONSERVER_BufferAttributes *buffer_attributes,
                                           void **cuda_ipc_handle);

/* TRITONSERVER_BufferAttributesByteSize - give the size in bytes. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_BufferAttributesByteSize(TRITONSERVER_BufferAttributes *buffer_attributes,
                                      size_t *byte_size);

/* ---- Server options ---- */

typedef enum tritonserver_modelcontrolmode_enum {
    TRITONSERVER_MODEL_CONTROL_NONE = 0,    /* load everything once, ignore later changes */
    TRITONSERVER_MODEL_CONTROL_POLL = 1,    /* load everything, follow changes at each poll */
    TRITONSERVER_MODEL_CONTROL_EXPLICIT = 2 /* load what is asked for */
} TRITONSERVER_ModelControlMode;

typedef enum tritonserver_ratelimitmode_enum {
    TRITONSERVER_RATE_LIMIT_OFF = 0,       /* run whenever an instance is free */
    TRITONSERVER_RATE_LIMIT_EXEC_COUNT = 1 /* resources bound it, least-run instance first */
} TRITONSERVER_RateLimitMode;

/* TRITONSERVER_ServerOptionsNew - make a set of options with the defaults.
 * options  out: owned by the caller */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsNew(TRITONSERVER_ServerOptions **options);

/* TRITONSERVER_ServerOptionsDelete - free a set of options. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsDelete(TRITONSERVER_ServerOptions *options);

/* TRITONSERVER_ServerOptionsSetServerId - set the server's name; default "triton". */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions *options, const char *server_id);

/* TRITONSERVER_ServerOptionsSetModelRepositoryPath - add a model repository.
 * model_repository_path  absolute; call once a repository */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelRepositoryPath(TRITONSERVER_ServerOptions *options,
                                                 const char *model_repository_path);

/* TRITONSERVER_ServerOptionsSetModelControlMode - choose how models come and go; default NONE. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelControlMode(TRITONSERVER_ServerOptions *options,
                                              TRITONSERVER_ModelControlMode mode);

/* TRITONSERVER_ServerOptionsSetStartupModel - add a model to load at start in EXPLICIT mode; "*"
 *   alone stands for all. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStartupModel(TRITONSERVER_ServerOptions *options,
                                          const char *model_name);

/* TRITONSERVER_ServerOptionsSetStrictModelConfig - require complete configurations instead of
 *   filling them in; default false. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictModelConfig(TRITONSERVER_ServerOptions *options, bool strict);

/* TRITONSERVER_ServerOptionsSetModelConfigName - prefer configs/NAME.pbtxt of each model over its
 *   config.pbtxt. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelConfigName(TRITONSERVER_ServerOptions *options,
                                             const char *model_config_name);

/* TRITONSERVER_ServerOptionsSetRateLimiterMode - choose whether resources bound execution. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRateLimiterMode(TRITONSERVER_ServerOptions *options,
                                             TRITONSERVER_RateLimitMode mode);

/* TRITONSERVER_ServerOptionsAddRateLimiterResource - say how much of a resource there is.
 * device  -1 for every device; ignored for a resource that the configuration calls global */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsAddRateLimiterResource(TRITONSERVER_ServerOptions *options,
                                                 const char *resource_name,
                                                 const size_t resource_count, const int device);

/* TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize - set the bytes of page-locked memory to
 *   keep; default 256 MiB. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                      uint64_t size);

/* TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize - set the bytes of a GPU's memory to keep;
 *   default 64 MiB. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                    int gpu_device, uint64_t size);

/* TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize - set the bytes of a GPU's address space
 *   for state that grows. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions *options, int gpu_device, size_t cuda_virtual_address_size);

/* TRITONSERVER_ServerOptionsSetResponseCacheByteSize - set the bytes of the local response cache;
 *   use TRITONSERVER_ServerOptionsSetCacheConfig. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetResponseCacheByteSize(TRITONSERVER_ServerOptions *options,
                                                   uint64_t size);

/* TRITONSERVER_ServerOptionsSetCacheConfig - choose and configure a response cache.
 * cache_name   found as CACHE_DIR/NAME/libtritoncache_NAME.so
 * config_json  handed to the cache as it is */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheConfig(TRITONSERVER_ServerOptions *options,
                                         const char *cache_name, const char *config_json);

/* TRITONSERVER_ServerOptionsSetCacheDirectory - set the directory of response caches. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCacheDirectory(TRITONSERVER_ServerOptions *options,
                                            const char *cache_dir);

/* TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability - set the lowest compute capability
 *   of GPUs to use. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(TRITONSERVER_ServerOptions *options,
                                                           double cc);

/* TRITONSERVER_ServerOptionsSetExitOnError - choose whether a model that fails to load at start
 *   makes the server fail; default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitOnError(TRITONSERVER_ServerOptions *options, bool exit);

/* TRITONSERVER_ServerOptionsSetStrictReadiness - choose whether "ready" needs every model to be
 *   ready; default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictReadiness(TRITONSERVER_ServerOptions *options, bool strict);

/* TRITONSERVER_ServerOptionsSetExitTimeout - set how long stopping waits for requests in flight,
 *   in seconds; default 30. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetExitTimeout(TRITONSERVER_ServerOptions *options, unsigned int timeout);

/* TRITONSERVER_ServerOptionsSetBufferManagerThreadCount - set the threads that copy tensors; 0
 *   copies on the calling thread. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(TRITONSERVER_ServerOptions *options,
                                                      unsigned int thread_count);

/* TRITONSERVER_ServerOptionsSetModelLoadThreadCount - set how many models load at the same time.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadThreadCount(TRITONSERVER_ServerOptions *options,
                                                  unsigned int thread_count);

/* TRITONSERVER_ServerOptionsSetModelLoadRetryCount - set how often a failed load is tried again.
 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadRetryCount(TRITONSERVER_ServerOptions *options,
                                                 unsigned int retry_count);

/* TRITONSERVER_ServerOptionsSetModelNamespacing - allow one model name in several repositories. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelNamespacing(TRITONSERVER_ServerOptions *options,
                                              bool enable_namespace);

/* TRITONSERVER_ServerOptionsSetEnablePeerAccess - let GPUs read each other's memory where they
 *   can; default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetEnablePeerAccess(TRITONSERVER_ServerOptions *options,
                                              bool enable_peer_access);

/* TRITONSERVER_ServerOptionsSetLogFile - send the log to a file; "" for the console. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions *options, const char *file);

/* TRITONSERVER_ServerOptionsSetLogInfo - switch INFO lines. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions *options, bool log);

/* TRITONSERVER_ServerOptionsSetLogWarn - switch WARN lines. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions *options, bool log);

/* TRITONSERVER_ServerOptionsSetLogError - switch ERROR lines. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions *options, bool log);

/* TRITONSERVER_ServerOptionsSetLogFormat - choose how a log line looks. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogFormat(TRITONSERVER_ServerOptions *options,
                                       const TRITONSERVER_LogFormat format);

/* TRITONSERVER_ServerOptionsSetLogVerbose - set how much detail VERBOSE gives; 0 for none. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetLogVerbose(TRITONSERVER_ServerOptions *options, int level);

/* TRITONSERVER_ServerOptionsSetMetrics - switch metrics as a whole; default true. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions *options, bool metrics);

/* TRITONSERVER_ServerOptionsSetGpuMetrics - switch GPU metrics; needs metrics as a whole. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetGpuMetrics(TRITONSERVER_ServerOptions *options, bool gpu_metrics);

/* TRITONSERVER_ServerOptionsSetCpuMetrics - switch CPU and memory metrics; needs metrics as a
 *   whole. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCpuMetrics(TRITONSERVER_ServerOptions *options, bool cpu_metrics);

/* TRITONSERVER_ServerOptionsSetMetricsInterval - set how often sampled metrics are read, in
 *   milliseconds; default 2000. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsInterval(TRITONSERVER_ServerOptions *options,
                                             uint64_t metrics_interval_ms);

/* TRITONSERVER_ServerOptionsSetBackendDirectory - set the directory of backends; NAME is found as
 *   DIR/NAME/libtriton_NAME.so. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendDirectory(TRITONSERVER_ServerOptions *options,
                                              const char *backend_dir);

/* TRITONSERVER_ServerOptionsSetRepoAgentDirectory - set the directory of agents; NAME is found as
 *   DIR/NAME/libtritonrepoagent_NAME.so. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRepoAgentDirectory(TRITONSERVER_ServerOptions *options,
                                                const char *repoagent_dir);

/* TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit - refuse loads while a device's memory is
 *   fuller than this.
 * kind      GPU only
 * fraction  0.0 to 1.0 */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(TRITONSERVER_ServerOptions *options,
                                                  const TRITONSERVER_InstanceGroupKind kind,
                                                  const int device_id, const double fraction);

/* TRITONSERVER_ServerOptionsSetBackendConfig - give a backend a setting.
 * backend_name  "" for a setting of all backends */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendConfig(TRITONSERVER_ServerOptions *options,
                                           const char *backend_name, const char *setting,
                                           const char *value);

/* TRITONSERVER_ServerOptionsSetHostPolicy - give a host policy a setting, such as "numa-node" or
 *   "cpu-cores". */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetHostPolicy(TRITONSERVER_ServerOptions *options,
                                        const char *policy_name, const char *setting,
                                        const char *value);

/* TRITONSERVER_ServerOptionsSetMetricsConfig - give the metrics a setting.
 * name  group of settings; "" for global ones */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsConfig(TRITONSERVER_ServerOptions *options, const char *name,
                                           const char *setting, const char *value);

/* ---- Server ---- */

/* Bits: how a model batches. */
typedef enum tritonserver_batchflag_enum {
    TRITONSERVER_BATCH_UNKNOWN = 1,  /* not in a way that the server can use */
    TRITONSERVER_BATCH_FIRST_DIM = 2 /* along the first dimension of every tensor */
} TRITONSERVER_ModelBatchFlag;

/* Bits: what an index lists. */
typedef enum tritonserver_modelindexflag_enum {
    TRITONSERVER_INDEX_FLAG_READY = 1 /* only what is ready */
} TRITONSERVER_ModelIndexFlag;

/* Bits: how many responses a request has. */
typedef enum tritonserver_txn_property_flag_enum {
    TRITONSERVER_TXN_ONE_TO_ONE = 1,
    TRITONSERVER_TXN_DECOUPLED = 2 /* none, one or many */
} TRITONSERVER_ModelTxnPropertyFlag;

/* TRITONSERVER_ServerNew - start a server; returns when the models of start-up are loaded or have
 *   failed.
 * server   out: owned by the caller
 * options  borrowed for the call
 * errors   INTERNAL when models failed, unless exit-on-error is off; INVALID_ARG for options that
 *          cannot be together; and what else makes starting impossible */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerNew(TRITONSERVER_Server **server, TRITONSERVER_ServerOptions *options);

/* TRITONSERVER_ServerDelete - stop a server if it runs, and free it.
 * errors  INTERNAL when the time-out passed first; it may be tried again */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerDelete(TRITONSERVER_Server *server);

/* TRITONSERVER_ServerStop - stop a server for good: requests in flight have the exit time-out to
 *   finish.
 * errors  INTERNAL when the time-out passed first */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerStop(TRITONSERVER_Server *server);

/* TRITONSERVER_ServerSetExitTimeout - change the exit time-out, in seconds. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerSetExitTimeout(TRITONSERVER_Server *server, unsigned int timeout);

/* TRITONSERVER_ServerRegisterModelRepository - add a repository while running.
 * name_mapping  string parameters: a directory's name and the model name that it gets
 * errors  UNSUPPORTED: this version has the repositories of its options only */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerRegisterModelRepository(TRITONSERVER_Server *server, const char *repository_path,
                                           const TRITONSERVER_Parameter **name_mapping,
                                           const uint32_t mapping_count);

/* TRITONSERVER_ServerUnregisterModelRepository - take a repository away; models loaded from it
 *   stay.
 * errors  UNSUPPORTED as above */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server *server,
                                             const char *repository_path);

/* TRITONSERVER_ServerPollModelRepository - look for changes and follow them.
 * errors  UNAVAILABLE when the mode is not POLL; UNSUPPORTED where the server polls by itself */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerPollModelRepository(TRITONSERVER_Server *server);

/* TRITONSERVER_ServerIsLive - ask whether the server runs at all. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerIsLive(TRITONSERVER_Server *server,
                                                                    bool *live);

/* TRITONSERVER_ServerIsReady - ask whether the server takes requests. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerIsReady(TRITONSERVER_Server *server,
                                                                     bool *ready);

/* TRITONSERVER_ServerModelIsReady - ask whether a model takes requests.
 * model_version  -1 for the version that the policy prefers
 * ready  out: false also for an unknown model or version */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server *server, const char *model_name,
                                const int64_t model_version, bool *ready);

/* TRITONSERVER_ServerModelBatchProperties - tell how a model batches.
 * flags  out: bits of TRITONSERVER_ModelBatchFlag
 * voidp  out: always NULL; the argument may be NULL
 * errors  NOT_FOUND for an unknown model or version, UNAVAILABLE for one that is not ready */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelBatchProperties(TRITONSERVER_Server *server, const char *model_name,
                                        const int64_t model_version, uint32_t *flags, void **voidp);

/* TRITONSERVER_ServerModelTransactionProperties - tell how many responses a request to a model
 *   has.
 * txn_flags  out: bits of TRITONSERVER_ModelTxnPropertyFlag
 * voidp      out: always NULL; the argument may be NULL
 * errors  NOT_FOUND for an unknown model or version, UNAVAILABLE for one that is not ready */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelTransactionProperties(TRITONSERVER_Server *server, const char *model_name,
                                              const int64_t model_version, uint32_t *txn_flags,
                                              void **voidp);

/* TRITONSERVER_ServerMetadata - describe the server: name, version, extensions.
 * server_metadata  out: owned by the caller */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerMetadata(TRITONSERVER_Server *server, TRITONSERVER_Message **server_metadata);

/* TRITONSERVER_ServerModelMetadata - describe a model: versions, platform, inputs, outputs.
 * model_metadata  out: owned by the caller
 * errors  NOT_FOUND for an unknown model or version, UNAVAILABLE for one that is not ready */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelMetadata(TRITONSERVER_Server *server, const char *model_name,
                                 const int64_t model_version,
                                 TRITONSERVER_Message **model_metadata);

/* TRITONSERVER_ServerModelStatistics - count what a model has done.
 * model_name   "" for every model
 * model_stats  out: owned by the caller */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelStatistics(TRITONSERVER_Server *server, const char *model_name,
                                   const int64_t model_version, TRITONSERVER_Message **model_stats);

/* TRITONSERVER_ServerModelConfig - give a model's configuration as it is in force.
 * config_version  1
 * model_config    out: owned by the caller
 * errors  NOT_FOUND for an unknown model or version, UNAVAILABLE for one that is not ready */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelConfig(TRITONSERVER_Server *server, const char *model_name,
                               const int64_t model_version, const uint32_t config_version,
                               TRITONSERVER_Message **model_config);

/* TRITONSERVER_ServerModelIndex - list the models of all repositories with their states.
 * flags        bits of TRITONSERVER_ModelIndexFlag
 * model_index  out: owned by the caller */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerModelIndex(TRITONSERVER_Server *server, uint32_t flags,
                              TRITONSERVER_Message **model_index);

/* TRITONSERVER_ServerLoadModel - load or reload a model; returns when it is ready or has failed.
 * errors  UNAVAILABLE when the mode is not EXPLICIT, INTERNAL when the model lies in no
 *         repository or in several, and what loading it failed with */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_ServerLoadModel(TRITONSERVER_Server *server,
                                                                       const char *model_name);

/* TRITONSERVER_ServerLoadModelWithParameters - load or reload a model with a configuration or
 *   files of the caller's.
 * parameters  "config" (STRING, JSON) replaces the configuration; "file:VERSION/NAME" (BYTES)
 *             adds a file
 * errors  as TRITONSERVER_ServerLoadModel: UNAVAILABLE, INTERNAL */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerLoadModelWithParameters(TRITONSERVER_Server *server, const char *model_name,
                                           const TRITONSERVER_Parameter **parameters,
                                           const uint64_t parameter_count);

/* TRITONSERVER_ServerUnloadModel - unload a model: new requests do not reach it any more, those
 *   under way are answered later. A thread of the server's, such as a backend's instance, does not
 *   wait for the first either.
 * errors  UNAVAILABLE when the mode is not EXPLICIT; none for a model that is not loaded */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server *server, const char *model_name);

/* TRITONSERVER_ServerUnloadModelAndDependents - as TRITONSERVER_ServerUnloadModel, and what was
 *   loaded for its sake, such as the steps of an ensemble.
 * errors  UNAVAILABLE when the mode is not EXPLICIT */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server *server, const char *model_name);

/* TRITONSERVER_ServerMetrics - take a snapshot of the metrics.
 * metrics  out: owned by the caller
 * errors   UNSUPPORTED when the server was made without metrics */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerMetrics(TRITONSERVER_Server *server, TRITONSERVER_Metrics **metrics);

/* TRITONSERVER_ServerInferAsync - run a request.
 * inference_request  the server's on success, until the release callback gives it back
 * trace   NULL for none; the server's in any case, also on error, until its release callback
 * errors  INVALID_ARG for a request that does not fit its model or its sequence, NOT_FOUND,
 *         UNAVAILABLE as TRITONSERVER_InferenceRequestNew, or because the queue is full: the
 *         request stays the caller's and no callback comes
 * thread  any; callbacks may come before this returns */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_ServerInferAsync(TRITONSERVER_Server *server,
                              TRITONSERVER_InferenceRequest *inference_request,
                              TRITONSERVER_InferenceTrace *trace);

/* ---- Metrics of the caller ---- */

typedef enum TRITONSERVER_metrickind_enum {
    TRITONSERVER_METRIC_KIND_COUNTER = 0,
    TRITONSERVER_METRIC_KIND_GAUGE = 1,
    TRITONSERVER_METRIC_KIND_HISTOGRAM = 2
} TRITONSERVER_MetricKind;

/* TRITONSERVER_MetricFamilyNew - make a family, or join the one of the same name and kind, whose
 *   description stays.
 * family  out: owned by the caller
 * errors  INVALID_ARG for a name that is none, is one of the server's own, or has another kind */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **family, const TRITONSERVER_MetricKind kind,
                             const char *name, const char *description);

/* TRITONSERVER_MetricFamilyDelete - free a family.
 * errors  INTERNAL while it still has metrics */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family);

/* TRITONSERVER_GetMetricFamilyKind - tell a family's kind. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily *family, TRITONSERVER_MetricKind *kind);

/* TRITONSERVER_MetricArgsNew - make an empty set of arguments for a metric.
 * args  out: owned by the caller */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs **args);

/* TRITONSERVER_MetricArgsSetHistogram - give the bucket bounds of a histogram.
 * buckets  buckets_count rising upper bounds, copied */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs *args, const double *buckets,
                                    const uint64_t buckets_count);

/* TRITONSERVER_MetricArgsDelete - free a set of arguments. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs *args);

/* TRITONSERVER_MetricNew - make a counter or a gauge in a family.
 * metric  out: owned by the caller
 * labels  label_count string parameters, copied; metrics of one family with equal labels share a
 *         value */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricNew(TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *family,
                       const TRITONSERVER_Parameter **labels, const uint64_t label_count);

/* TRITONSERVER_MetricNewWithArgs - make a metric that needs arguments, such as a histogram; the
 *   rest as TRITONSERVER_MetricNew.
 * args  borrowed for the call */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONSERVER_MetricNewWithArgs(TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *family,
                               const TRITONSERVER_Parameter **labels, const uint64_t label_count,
                               const TRITONSERVER_MetricArgs *args);

/* TRITONSERVER_MetricDelete - free a metric; its family must still exist. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric);

/* TRITONSERVER_MetricValue - read a counter or a gauge.
 * errors  UNSUPPORTED for a histogram */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricValue(TRITONSERVER_Metric *metric,
                                                                   double *value);

/* TRITONSERVER_MetricIncrement - add to a counter or a gauge.
 * errors  INVALID_ARG for a negative step of a counter, UNSUPPORTED for a histogram */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric,
                                                                       double value);

/* TRITONSERVER_MetricSet - set a gauge.
 * errors  UNSUPPORTED for any other kind */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricSet(TRITONSERVER_Metric *metric,
                                                                 double value);

/* TRITONSERVER_MetricObserve - count an observation into a histogram.
 * errors  UNSUPPORTED for any other kind */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_MetricObserve(TRITONSERVER_Metric *metric,
                                                                     double value);

/* TRITONSERVER_GetMetricKind - tell a metric's kind. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONSERVER_GetMetricKind(TRITONSERVER_Metric *metric,
                                                                     TRITONSERVER_MetricKind *kind);

#ifdef __cplusplus
}
#endif

#endif /* TRITONSERVER_H */
