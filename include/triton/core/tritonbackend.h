#ifndef TRITONBACKEND_H
#define TRITONBACKEND_H

/* The C interface between the server and a backend: the library that runs models of one kind. API
 * version 1.19.
 *
 * The server's side (most of this file) is what a backend calls. The backend's side, the functions
 * near the end marked TRITONBACKEND_ISPEC, is what libtriton_NAME.so exports.
 *
 * The rules at the top of tritonserver.h hold here too: NULL is success, errors belong to the
 * caller, strings and arrays that come back are borrowed from the object they came from. Any output
 * pointer of a "properties" function may be NULL. Requests, inputs, responses, outputs and states
 * are each used by one thread at a time; different requests and their responses are independent.
 */

#include "triton/core/tritonserver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRITONBACKEND_DECLSPEC __attribute__((visibility("default")))
#define TRITONBACKEND_ISPEC    __attribute__((visibility("default")))
#else
#define TRITONBACKEND_DECLSPEC
#define TRITONBACKEND_ISPEC
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TRITONBACKEND_Backend TRITONBACKEND_Backend;
typedef struct TRITONBACKEND_BackendAttribute TRITONBACKEND_BackendAttribute;
typedef struct TRITONBACKEND_Batcher TRITONBACKEND_Batcher;
typedef struct TRITONBACKEND_Input TRITONBACKEND_Input;
typedef struct TRITONBACKEND_MemoryManager TRITONBACKEND_MemoryManager;
typedef struct TRITONBACKEND_Model TRITONBACKEND_Model;
typedef struct TRITONBACKEND_ModelInstance TRITONBACKEND_ModelInstance;
typedef struct TRITONBACKEND_ModelInstanceResponseStatistics
    TRITONBACKEND_ModelInstanceResponseStatistics;
typedef struct TRITONBACKEND_Output TRITONBACKEND_Output;
typedef struct TRITONBACKEND_Request TRITONBACKEND_Request;
typedef struct TRITONBACKEND_Response TRITONBACKEND_Response;
typedef struct TRITONBACKEND_ResponseFactory TRITONBACKEND_ResponseFactory;
typedef struct TRITONBACKEND_State TRITONBACKEND_State;

/* ---- Version ---- */

/* A backend needs the same major and at least the minor that it was compiled with; it checks that
 * in TRITONBACKEND_Initialize. */
#define TRITONBACKEND_API_VERSION_MAJOR 1
#define TRITONBACKEND_API_VERSION_MINOR 19

/* TRITONBACKEND_ApiVersion - tell which backend interface the server speaks.
 * major, minor  out */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major,
                                                                    uint32_t *minor);

/* How the files of a backend or a model are handed over. */
typedef enum TRITONBACKEND_artifacttype_enum {
    TRITONBACKEND_ARTIFACT_FILESYSTEM = 0 /* a directory on this machine */
} TRITONBACKEND_ArtifactType;

/* ---- Memory ---- */

/* TRITONBACKEND_MemoryManagerAllocate - get memory from the server's pools.
 * buffer          out: owned by the caller
 * memory_type_id  number of the GPU
 * byte_size       bytes
 * errors  UNSUPPORTED when this kind of memory never can be had here, UNAVAILABLE when there is
 *         not enough of it at the moment
 * thread  any */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerAllocate(TRITONBACKEND_MemoryManager *manager, void **buffer,
                                    const TRITONSERVER_MemoryType memory_type,
                                    const int64_t memory_type_id, const uint64_t byte_size);

/* TRITONBACKEND_MemoryManagerFree - give memory back.
 * memory_type, memory_type_id  as they were at the allocation
 * thread  any */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager *manager, void *buffer,
                                const TRITONSERVER_MemoryType memory_type,
                                const int64_t memory_type_id);

/* ---- Inputs ---- */

/* TRITONBACKEND_InputProperties - describe an input tensor; every output may be NULL.
 * shape, dims_count  out: with the batch dimension where the model batches
 * byte_size     out: bytes at hand, which need not be what shape and type call for: check
 * buffer_count  out: pieces for TRITONBACKEND_InputBuffer, together byte_size bytes */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **name,
                              TRITONSERVER_DataType *datatype, const int64_t **shape,
                              uint32_t *dims_count, uint64_t *byte_size, uint32_t *buffer_count);

/* TRITONBACKEND_InputPropertiesForHostPolicy - describe an input as instances of a host policy
 *   see it; without buffers for that policy the plain ones count.
 * host_policy_name  NULL for the plain buffers */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputPropertiesForHostPolicy(TRITONBACKEND_Input *input, const char *host_policy_name,
                                           const char **name, TRITONSERVER_DataType *datatype,
                                           const int64_t **shape, uint32_t *dims_count,
                                           uint64_t *byte_size, uint32_t *buffer_count);

/* TRITONBACKEND_InputBuffer - give one piece of an input's contents.
 * index            below buffer_count
 * buffer           out: borrowed until the request is released; must not be written to
 * memory_type, memory_type_id  in: where the caller would like it; out: where it lies */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, const uint32_t index, const void **buffer,
                          uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                          int64_t *memory_type_id);

/* TRITONBACKEND_InputBufferForHostPolicy - give one piece of an input's contents for a host
 *   policy; the rest as TRITONBACKEND_InputBuffer.
 * host_policy_name  NULL for the plain buffers */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input *input, const char *host_policy_name, const uint32_t index,
    const void **buffer, uint64_t *buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id);

/* TRITONBACKEND_InputBufferAttributes - give one piece of an input's contents with its
 *   attributes.
 * index              below buffer_count
 * buffer             out: borrowed until the request is released; must not be written to
 * buffer_attributes  out: borrowed as well */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InputBufferAttributes(TRITONBACKEND_Input *input, const uint32_t index,
                                    const void **buffer,
                                    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Outputs ---- */

/* TRITONBACKEND_OutputBuffer - get the memory into which an output's contents go; once an output.
 * buffer            out: owned by the output until the response is sent
 * buffer_byte_size  bytes; 0 is allowed and may give NULL
 * memory_type, memory_type_id  in: where the caller would like it; out: where it lies
 * errors  ALREADY_EXISTS when it was asked for before */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer,
                           const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                           int64_t *memory_type_id);

/* TRITONBACKEND_OutputBufferAttributes - give the attributes of an output's buffer; after
 *   TRITONBACKEND_OutputBuffer only.
 * buffer_attributes  out: borrowed from the output */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output *output,
                                     TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Requests ---- */

/* A request is the backend's from the moment Execute accepts it until it releases it. */

/* TRITONBACKEND_RequestId - give the client's id of a request; empty if it has none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_RequestId(TRITONBACKEND_Request *request,
                                                                   const char **id);

/* TRITONBACKEND_RequestIsCancelled - ask whether the client has cancelled; then an error response
 *   with CANCELLED is the right answer. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request, bool *is_cancelled);

/* TRITONBACKEND_ResponseFactoryIsCancelled - ask whether the client has cancelled the request
 *   behind a factory. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory *factory,
                                         bool *is_cancelled);

/* TRITONBACKEND_RequestCorrelationId - give a numeric correlation id; 0 for none.
 * errors  INVALID_ARG when the id is a string */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *request, uint64_t *id);

/* TRITONBACKEND_InferenceRequestTimeoutMicroseconds - give the time the request may take, in
 *   microseconds; 0 for no limit. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceRequestTimeoutMicroseconds(TRITONBACKEND_Request *request,
                                                  uint64_t *timeout);

/* TRITONBACKEND_RequestCorrelationIdString - give a textual correlation id; empty for none.
 * errors  INVALID_ARG when the id is a number */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *request, const char **id);

/* TRITONBACKEND_RequestFlags - give the bits of TRITONSERVER_RequestFlag. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *request, uint32_t *flags);

/* TRITONBACKEND_RequestParameterCount - count a request's parameters. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request, uint32_t *count);

/* TRITONBACKEND_RequestParameter - give a parameter of a request; the order differs from request
 *   to request.
 * index   below the count
 * vvalue  out: points as TRITONSERVER_ParameterType says (a STRING is the pointer itself) */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request, const uint32_t index,
                               const char **key, TRITONSERVER_ParameterType *type,
                               const void **vvalue);

/* TRITONBACKEND_RequestInputCount - count a request's inputs. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request, uint32_t *count);

/* TRITONBACKEND_RequestInputName - give the name of an input; the order differs from request to
 *   request.
 * index  below the count */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputName(TRITONBACKEND_Request *request, const uint32_t index,
                               const char **input_name);

/* TRITONBACKEND_RequestInput - find an input by name.
 * input   out: borrowed from the request
 * errors  INVALID_ARG when the request has no such input */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
                           TRITONBACKEND_Input **input);

/* TRITONBACKEND_RequestInputByIndex - give an input by position; the order differs from request
 *   to request.
 * index  below the count
 * input  out: borrowed from the request */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request, const uint32_t index,
                                  TRITONBACKEND_Input **input);

/* TRITONBACKEND_RequestOutputCount - count the outputs that the request asks for; all of the
 *   model's when the client named none. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request, uint32_t *count);

/* TRITONBACKEND_RequestOutputName - give the name of an output that the request asks for.
 * index  below the count */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request, const uint32_t index,
                                const char **output_name);

/* TRITONBACKEND_RequestOutputBufferProperties - say beforehand where an output's memory would
 *   lie; a hint, not a promise.
 * name         NULL when not known yet
 * byte_size    NULL when not known yet
 * memory_type, memory_type_id  in: what the caller prefers; out: what it would get
 * errors  UNAVAILABLE when the server cannot tell; what the caller of the request says */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestOutputBufferProperties(TRITONBACKEND_Request *request, const char *name,
                                            size_t *byte_size, TRITONSERVER_MemoryType *memory_type,
                                            int64_t *memory_type_id);

/* TRITONBACKEND_RequestRelease - give a request back; everything borrowed from it ends.
 * release_flags  bits of TRITONSERVER_RequestReleaseFlag
 * errors  UNSUPPORTED for other bits; the request stays the caller's */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request, uint32_t release_flags);

/* TRITONBACKEND_RequestTrace - give the trace of a request.
 * trace  out: borrowed; NULL when the request is not traced */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_RequestTrace(TRITONBACKEND_Request *request, TRITONSERVER_InferenceTrace **trace);

/* ---- Response factories ---- */

/* For backends that release a request before they have sent all its responses. */

/* TRITONBACKEND_ResponseFactoryNew - make the factory of a request.
 * factory  out: owned by the caller */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory,
                                 TRITONBACKEND_Request *request);

/* TRITONBACKEND_ResponseFactoryDelete - free a factory. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *factory);

/* TRITONBACKEND_ResponseFactorySendFlags - send flags alone, such as FINAL after the last
 *   response.
 * send_flags  bits of TRITONSERVER_ResponseCompleteFlag */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *factory,
                                       const uint32_t send_flags);

/* ---- Responses ---- */

/* A response's outputs and their buffers are all made before the next response of the same request
 * is made. Sending may come later and in any order. */

/* TRITONBACKEND_ResponseNew - make a response to a request.
 * response  out: owned by the caller until it is sent */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response, TRITONBACKEND_Request *request);

/* TRITONBACKEND_ResponseNewFromFactory - make a response by way of a factory.
 * response  out: owned by the caller until it is sent */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response **response,
                                     TRITONBACKEND_ResponseFactory *factory);

/* TRITONBACKEND_ResponseDelete - drop a response that is not going to be sent. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response);

/* TRITONBACKEND_ResponseSetStringParameter - attach a string parameter to a response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *response, const char *name,
                                         const char *value);

/* TRITONBACKEND_ResponseSetIntParameter - attach an integer parameter to a response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *response, const char *name,
                                      const int64_t value);

/* TRITONBACKEND_ResponseSetBoolParameter - attach a boolean parameter to a response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *response, const char *name,
                                       const bool value);

/* TRITONBACKEND_ResponseSetDoubleParameter - attach a floating point parameter to a response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *response, const char *name,
                                         const double value);

/* TRITONBACKEND_ResponseOutput - add an output tensor to a response.
 * output             out: borrowed from the response
 * shape, dims_count  copied; with the batch dimension where the model batches */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response, TRITONBACKEND_Output **output,
                             const char *name, const TRITONSERVER_DataType datatype,
                             const int64_t *shape, const uint32_t dims_count);

/* TRITONBACKEND_ResponseSend - send a response.
 * response    the server's from here on, also on error
 * send_flags  bits of TRITONSERVER_ResponseCompleteFlag
 * error       NULL, or what went wrong; stays the caller's
 * thread      any */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response, const uint32_t send_flags,
                           TRITONSERVER_Error *error);

/* ---- States of sequences ---- */

/* For models whose sequence_batching lists states. */

/* TRITONBACKEND_StateNew - begin a new value of a state.
 * state   out: borrowed; ends when the request is released. Asked again for the same name: the same
 *         state, with the new type and shape
 * name    an output name of the configuration's states
 * shape   with the batch dimension, if the model has one
 * errors  INVALID_ARG when the configuration has no such state, or the shape cannot be */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateNew(TRITONBACKEND_State **state, TRITONBACKEND_Request *request,
                       const char *name, const TRITONSERVER_DataType datatype, const int64_t *shape,
                       const uint32_t dims_count);

/* TRITONBACKEND_StateUpdate - put the new value in the place of the old one; without it the next
 *   request sees the old value. Another value may follow: StateBuffer, StateUpdate.
 * errors  INVALID_ARG when no buffer was asked for since the last update; when the request was
 *         released */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_StateUpdate(TRITONBACKEND_State *state);

/* TRITONBACKEND_StateBuffer - get the memory for a state's contents, to be filled before
 *   StateUpdate. Of a state with use_same_buffer_for_input_output it is the memory of the input,
 *   unless the size is another.
 * buffer  out: owned by the state
 * memory_type, memory_type_id  in: where the caller would like it; out: where it lies */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateBuffer(TRITONBACKEND_State *state, void **buffer,
                          const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
                          int64_t *memory_type_id);

/* TRITONBACKEND_StateBufferAttributes - give the attributes of a state's buffer.
 * buffer_attributes  out: borrowed from the state */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State *state,
                                    TRITONSERVER_BufferAttributes **buffer_attributes);

/* ---- Backend ---- */

/* When the server may call Execute again. BLOCKING: an instance is free as soon as Execute has
 * returned. DEVICE_BLOCKING: instances on one device take turns, so that Execute of one does not
 * begin before Execute of another has returned; with a sequence batcher BLOCKING applies. */
typedef enum TRITONBACKEND_execpolicy_enum {
    TRITONBACKEND_EXECUTION_BLOCKING = 0,
    TRITONBACKEND_EXECUTION_DEVICE_BLOCKING = 1
} TRITONBACKEND_ExecutionPolicy;

/* TRITONBACKEND_BackendName - give the backend's name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendName(TRITONBACKEND_Backend *backend,
                                                                     const char **name);

/* TRITONBACKEND_BackendConfig - give the settings of the command line: {"cmdline": {"SETTING":
 *   "VALUE", ...}}.
 * backend_config  out: borrowed; do not delete it */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend, TRITONSERVER_Message **backend_config);

/* TRITONBACKEND_BackendExecutionPolicy - give the execution policy in force. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend *backend,
                                     TRITONBACKEND_ExecutionPolicy *policy);

/* TRITONBACKEND_BackendSetExecutionPolicy - choose the execution policy; within
 *   TRITONBACKEND_Initialize only. Default BLOCKING. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend *backend,
                                        TRITONBACKEND_ExecutionPolicy policy);

/* TRITONBACKEND_BackendArtifacts - tell where the backend's own files lie.
 * location  out: the directory of its library */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend *backend,
                               TRITONBACKEND_ArtifactType *artifact_type, const char **location);

/* TRITONBACKEND_BackendMemoryManager - give the memory manager.
 * manager  out: borrowed from the backend */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend *backend,
                                   TRITONBACKEND_MemoryManager **manager);

/* TRITONBACKEND_BackendState - give what BackendSetState stored; NULL at first. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **state);

/* TRITONBACKEND_BackendSetState - store a pointer of the backend's. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *state);

/* ---- Model ---- */

/* TRITONBACKEND_ModelName - give the model's name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model,
                                                                   const char **name);

/* TRITONBACKEND_ModelVersion - give the model's version. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model,
                                                                      uint64_t *version);

/* TRITONBACKEND_ModelRepository - tell where the model's files lie.
 * location  out: the model's directory, in which version directories are */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model, TRITONBACKEND_ArtifactType *artifact_type,
                              const char **location);

/* TRITONBACKEND_ModelConfig - give the model's configuration.
 * config_version  1
 * model_config    out: owned by the caller */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model, const uint32_t config_version,
                          TRITONSERVER_Message **model_config);

/* TRITONBACKEND_ModelAutoCompleteConfig - ask whether the backend is to fill in what the
 *   configuration leaves out. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model, bool *auto_complete_config);

/* TRITONBACKEND_ModelSetConfig - report a configuration that was filled in; within
 *   TRITONBACKEND_ModelInitialize only. Inputs, outputs, max_batch_size and, if there was none,
 *   the scheduler are taken over; other changes are ignored. The server may add to it: read it
 *   again afterwards.
 * config_version  1
 * model_config    borrowed for the call
 * errors  INVALID_ARG when the model is not being auto-completed, or the result is not valid */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model, const uint32_t config_version,
                             TRITONSERVER_Message *model_config);

/* TRITONBACKEND_ModelServer - give the server that serves the model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelServer(TRITONBACKEND_Model *model,
                                                                     TRITONSERVER_Server **server);

/* TRITONBACKEND_ModelBackend - give the model's backend. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model, TRITONBACKEND_Backend **backend);

/* TRITONBACKEND_ModelState - give what ModelSetState stored; NULL at first. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model,
                                                                    void **state);

/* TRITONBACKEND_ModelSetState - store a pointer of the backend's. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model,
                                                                       void *state);

/* TRITONBACKEND_ModelReportMemoryUsage - tell how much memory the model holds outside its
 *   instances; replaces the last report.
 * usage  usage_size totals, one for each kind and device; borrowed for the call */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *model,
                                     TRITONSERVER_BufferAttributes **usage, uint32_t usage_size);

/* ---- Model instance ---- */

/* TRITONBACKEND_ModelInstanceName - give the instance's name. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance, const char **name);

/* TRITONBACKEND_ModelInstanceKind - tell what the instance runs on. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
                                TRITONSERVER_InstanceGroupKind *kind);

/* TRITONBACKEND_ModelInstanceDeviceId - give the number of the instance's GPU; 0 for a CPU
 *   instance. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance, int32_t *device_id);

/* TRITONBACKEND_ModelInstanceHostPolicy - give the instance's host policy: {"POLICY": {"SETTING":
 *   "VALUE", ...}}.
 * host_policy  out: borrowed; do not delete it */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance *instance,
                                      TRITONSERVER_Message **host_policy);

/* TRITONBACKEND_ModelInstanceIsPassive - ask whether the instance gets no requests from the
 *   scheduler. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance *instance, bool *is_passive);

/* TRITONBACKEND_ModelInstanceProfileCount - count the optimization profiles of the instance
 *   group. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance *instance, uint32_t *count);

/* TRITONBACKEND_ModelInstanceProfileName - give an optimization profile's name.
 * index  below the count */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance *instance, const uint32_t index,
                                       const char **profile_name);

/* TRITONBACKEND_ModelInstanceSecondaryDeviceCount - count the secondary devices of the instance
 *   group. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSecondaryDeviceCount(TRITONBACKEND_ModelInstance *instance,
                                                uint32_t *count);

/* TRITONBACKEND_ModelInstanceSecondaryDeviceProperties - describe a secondary device.
 * index  below the count
 * kind   out: such as "KIND_NVDLA"
 * id     out: its number */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance *instance, uint32_t index, const char **kind, int64_t *id);

/* TRITONBACKEND_ModelInstanceModel - give the instance's model. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                 TRITONBACKEND_Model **model);

/* TRITONBACKEND_ModelInstanceState - give what ModelInstanceSetState stored; NULL at first. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance, void **state);

/* TRITONBACKEND_ModelInstanceSetState - store a pointer of the backend's. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance, void *state);

/* TRITONBACKEND_ModelInstanceReportMemoryUsage - tell how much memory the instance holds;
 *   replaces the last report.
 * usage  usage_size totals, one for each kind and device; borrowed for the call */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReportMemoryUsage(TRITONBACKEND_ModelInstance *instance,
                                             TRITONSERVER_BufferAttributes **usage,
                                             uint32_t usage_size);

/* ---- Statistics ---- */

/* Times are nanoseconds of the monotonic clock, never 0, taken in this order during Execute:
 * exec_start on entry, compute_start when inputs are ready, compute_end when results are there,
 * exec_end when outputs are written. */

/* TRITONBACKEND_ModelInstanceReportStatistics - count one request; before it is released.
 * success  whether it got a good answer */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, const bool success,
    const uint64_t exec_start_ns, const uint64_t compute_start_ns, const uint64_t compute_end_ns,
    const uint64_t exec_end_ns);

/* TRITONBACKEND_ModelInstanceResponseStatisticsNew - make a record about one response of a
 *   request with several.
 * response_statistics  out: owned by the caller */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsNew(
    TRITONBACKEND_ModelInstanceResponseStatistics **response_statistics);

/* TRITONBACKEND_ModelInstanceResponseStatisticsDelete - free a record; what was set in it stays
 *   the caller's. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsDelete(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics);

/* TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance - say which instance answered. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ModelInstance *model_instance);

/* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory - say which request is
 *   answered. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    TRITONBACKEND_ResponseFactory *response_factory);

/* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart - say when work on the response
 *   began. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_start);

/* TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart - say when writing its
 *   outputs began; left out for an empty response. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics,
    uint64_t compute_output_start);

/* TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd - say when the response was
 *   complete. */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, uint64_t response_end);

/* TRITONBACKEND_ModelInstanceResponseStatisticsSetError - say with which error it was sent, if
 *   any.
 * error  borrowed until the record is reported */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetError(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics, TRITONSERVER_Error *error);

/* TRITONBACKEND_ModelInstanceReportResponseStatistics - count a response.
 * response_statistics  borrowed for the call */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportResponseStatistics(
    TRITONBACKEND_ModelInstanceResponseStatistics *response_statistics);

/* TRITONBACKEND_ModelInstanceReportBatchStatistics - count one run of the model.
 * batch_size  sum of the requests' batch sizes; a request without batch dimension counts 1 */
TRITONBACKEND_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, const uint64_t batch_size, const uint64_t exec_start_ns,
    const uint64_t compute_start_ns, const uint64_t compute_end_ns, const uint64_t exec_end_ns);

/* ---- Backend attributes ---- */

/* TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup - name an instance group to use where a
 *   configuration has none; the first call is the first choice.
 * count       instances a device; 0 for the server's default
 * device_ids  id_count numbers, copied; NULL for the server's default */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *backend_attributes, const TRITONSERVER_InstanceGroupKind kind,
    const uint64_t count, const uint64_t *device_ids, const uint64_t id_count);

/* TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading - allow ModelInstanceInitialize
 *   calls at the same time; default false. */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute *backend_attributes, bool enabled);

/* ---- What a backend exports ---- */

/* Execute is required, everything else is optional. Order: Initialize, then for each model
 * ModelInitialize, its instances, their Executes, ModelInstanceFinalize, ModelFinalize; Finalize
 * at last. Different models and instances come from several threads at the same time. */

/* TRITONBACKEND_Initialize - prepare the backend; once, before any model.
 * errors  the backend, and with it the model that asked for it, does not load */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);

/* TRITONBACKEND_Finalize - free what the backend holds and join its threads; once, after all
 *   models. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend);

/* TRITONBACKEND_ModelInitialize - check a model's configuration, fill it in if asked to, and
 *   prepare what instances share.
 * errors  the model does not load; ModelFinalize is called all the same only if this succeeded */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model);

/* TRITONBACKEND_ModelFinalize - free what a model holds; after its instances. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model);

/* TRITONBACKEND_ModelInstanceInitialize - prepare an instance.
 * errors  the model does not load */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance);

/* TRITONBACKEND_ModelInstanceFinalize - free what an instance holds; never while Execute runs. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance);

/* TRITONBACKEND_ModelInstanceExecute - run a batch of requests.
 * requests       request_count requests; the array is the server's, the requests are the
 *                backend's once this returns success: each must be answered and released, here or
 *                later
 * errors  the requests stay the server's, which answers them all with the error
 * thread  one call at a time for an instance, not always on the same thread */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t request_count);

/* TRITONBACKEND_ModelInstanceReady - tell whether an instance could run a request; asked for a
 *   model's readiness. Newer servers only: 2.51 does not call it.
 * errors  any error means not ready */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance);

/* TRITONBACKEND_GetBackendAttribute - fill in attributes; asked as often as the server needs
 *   them.
 * backend_attributes  borrowed for the call
 * errors  the attributes set in this call are ignored */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                  TRITONBACKEND_BackendAttribute *backend_attributes);

/* ---- Custom batching ---- */

/* Exported by a backend or by a strategy library of its own, all five or none. They decide whether
 * one more request joins the batch that is being formed. Called with the queue locked: quick, and
 * without calls that wait for the server. */

/* TRITONBACKEND_ModelBatcherInitialize - prepare what every batch of a model uses, read-only
 *   afterwards.
 * batcher  out: the library's own */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher, TRITONBACKEND_Model *model);

/* TRITONBACKEND_ModelBatcherFinalize - free what ModelBatcherInitialize made. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher);

/* TRITONBACKEND_ModelBatchIncludeRequest - decide on one request.
 * userp           as ModelBatchInitialize set it
 * should_include  out */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *request, void *userp,
                                       bool *should_include);

/* TRITONBACKEND_ModelBatchInitialize - begin a batch.
 * userp  out: the library's state of this batch */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher, void **userp);

/* TRITONBACKEND_ModelBatchFinalize - end a batch. */
TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelBatchFinalize(void *userp);

/* ---- Looking into a response ---- */

/* For code that sees a response between a backend and the server, such as a cache. */

/* TRITONBACKEND_InferenceResponseOutputByName - describe an output of a response by its name.
 * shape, dim_count  out: borrowed from the response
 * errors  NOT_FOUND when it has none of that name */
TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutputByName(TRITONBACKEND_Response *response, const char *name,
                                            TRITONSERVER_DataType *datatype, const int64_t **shape,
                                            uint64_t *dim_count);

/* TRITONBACKEND_InferenceResponseOutput - describe an output of a response by its position.
 * index             below the response's count of outputs
 * shape, dim_count  out: borrowed from the response */
TRITONSERVER_DECLSPEC TRITONSERVER_Error *
TRITONBACKEND_InferenceResponseOutput(TRITONBACKEND_Response *response, const uint32_t index,
                                      const char **name, TRITONSERVER_DataType *datatype,
                                      const int64_t **shape, uint64_t *dim_count);

#ifdef __cplusplus
}
#endif

#endif /* TRITONBACKEND_H */
