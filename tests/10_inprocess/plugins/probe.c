/* A backend that tries every function that a backend may call, and answers with the first thing
 * that was not as documented.
 *
 * A request to a model named "nested..." runs a request of its own to the model "plain"
 * meanwhile; a decoupled model answers three times after it released the request. */
#include "triton/core/tritonbackend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char failure[512];
static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *what, int line)
{
    pthread_mutex_lock(&failure_lock);
    if (!*failure)
        snprintf(failure, sizeof(failure), "probe.c:%d: %s", line, what);
    pthread_mutex_unlock(&failure_lock);
}

#define EXPECT(cond)               \
    do {                           \
        if (!(cond))               \
            note(#cond, __LINE__); \
    } while (0)

static void ok_at(TRITONSERVER_Error *e, const char *call, int line)
{
    char text[400];
    if (!e)
        return;
    snprintf(text, sizeof(text), "%s: %s", call, TRITONSERVER_ErrorMessage(e));
    note(text, line);
    TRITONSERVER_ErrorDelete(e);
}
#define OK(call) ok_at((call), #call, __LINE__)

static void fails_at(TRITONSERVER_Error *e, TRITONSERVER_Error_Code code, const char *call,
                     int line)
{
    if (!e || TRITONSERVER_ErrorCode(e) != code)
        note(call, line);
    TRITONSERVER_ErrorDelete(e);
}
#define FAILS(call, code) \
    fails_at((call), TRITONSERVER_ERROR_##code, "no " #code ": " #call, __LINE__)

static void names_at(TRITONSERVER_Error *e, const char *message, int line)
{
    if (!e || strcmp(TRITONSERVER_ErrorMessage(e), message) != 0)
        note(message, line);
    TRITONSERVER_ErrorDelete(e);
}
/* The call without an argument that it needs is refused; the error names both. */
#define NEEDS(argument, function, ...) \
    names_at(function(__VA_ARGS__), #function ": '" argument "' must not be NULL", __LINE__)

static TRITONSERVER_Error *verdict(void)
{
    pthread_mutex_lock(&failure_lock);
    TRITONSERVER_Error *e =
        *failure ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, failure) : NULL;
    pthread_mutex_unlock(&failure_lock);
    return e;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int mine; /* what states point to */

TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                                      TRITONBACKEND_BackendAttribute *attributes)
{
    (void)backend;
    OK(TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true));
    OK(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, NULL, 0));
    NEEDS("device_ids", TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup, attributes,
          TRITONSERVER_INSTANCEGROUPKIND_GPU, 1, NULL, 1);
    return NULL;
}

static void try_memory(TRITONBACKEND_Backend *backend)
{
    TRITONBACKEND_MemoryManager *manager;
    void *p = NULL;
    void *q = NULL;
    OK(TRITONBACKEND_BackendMemoryManager(backend, &manager));
    FAILS(TRITONBACKEND_BackendMemoryManager(NULL, &manager), INVALID_ARG);
    OK(TRITONBACKEND_MemoryManagerAllocate(manager, &p, TRITONSERVER_MEMORY_CPU, 0, 100000));
    EXPECT(p && (uintptr_t)p % 64 == 0);
    memset(p, 7, 100000);
    OK(TRITONBACKEND_MemoryManagerAllocate(manager, &q, TRITONSERVER_MEMORY_CPU_PINNED, 0, 1));
    FAILS(TRITONBACKEND_MemoryManagerFree(manager, q, TRITONSERVER_MEMORY_CPU, 0), INVALID_ARG);
    OK(TRITONBACKEND_MemoryManagerFree(manager, q, TRITONSERVER_MEMORY_CPU_PINNED, 0));
    OK(TRITONBACKEND_MemoryManagerFree(manager, p, TRITONSERVER_MEMORY_CPU, 0));
    FAILS(TRITONBACKEND_MemoryManagerAllocate(manager, &p, TRITONSERVER_MEMORY_GPU, 0, 1),
          UNSUPPORTED);
    FAILS(TRITONBACKEND_MemoryManagerAllocate(manager, &p, TRITONSERVER_MEMORY_CPU, 0, UINT64_MAX),
          UNAVAILABLE);
    FAILS(TRITONBACKEND_MemoryManagerAllocate(NULL, &p, TRITONSERVER_MEMORY_CPU, 0, 1),
          INVALID_ARG);
    FAILS(TRITONBACKEND_MemoryManagerFree(NULL, p, TRITONSERVER_MEMORY_CPU, 0), INVALID_ARG);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    uint32_t major = 0;
    uint32_t minor = 0;
    const char *text = "";
    void *state = &mine;
    TRITONSERVER_Message *config;
    TRITONBACKEND_ExecutionPolicy policy;
    TRITONBACKEND_ArtifactType artifact;
    OK(TRITONBACKEND_ApiVersion(&major, &minor));
    EXPECT(major == TRITONBACKEND_API_VERSION_MAJOR && minor >= TRITONBACKEND_API_VERSION_MINOR);
    OK(TRITONBACKEND_BackendName(backend, &text));
    EXPECT(strcmp(text, "probe") == 0);
    OK(TRITONBACKEND_BackendConfig(backend, &config));
    const char *json;
    size_t len;
    OK(TRITONSERVER_MessageSerializeToJson(config, &json, &len));
    EXPECT(strstr(json, "\"colour\":\"blue\""));
    OK(TRITONBACKEND_BackendExecutionPolicy(backend, &policy));
    EXPECT(policy == TRITONBACKEND_EXECUTION_BLOCKING);
    OK(TRITONBACKEND_BackendSetExecutionPolicy(backend, TRITONBACKEND_EXECUTION_BLOCKING));
    OK(TRITONBACKEND_BackendArtifacts(backend, &artifact, &text));
    EXPECT(artifact == TRITONBACKEND_ARTIFACT_FILESYSTEM && strstr(text, "/probe"));
    OK(TRITONBACKEND_BackendState(backend, &state));
    EXPECT(!state);
    OK(TRITONBACKEND_BackendSetState(backend, &mine));
    OK(TRITONBACKEND_BackendState(backend, &state));
    EXPECT(state == &mine);
    try_memory(backend);
    return verdict();
}

TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    (void)backend;
    return NULL;
}

/* One report of memory: 1000 bytes of CPU memory. */
static TRITONSERVER_BufferAttributes *usage(void)
{
    TRITONSERVER_BufferAttributes *b;
    OK(TRITONSERVER_BufferAttributesNew(&b));
    OK(TRITONSERVER_BufferAttributesSetByteSize(b, 1000));
    return b;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    const char *text = "";
    uint64_t version = 0;
    bool complete = false;
    void *state = &mine;
    TRITONBACKEND_ArtifactType artifact;
    TRITONSERVER_Message *config;
    TRITONSERVER_Server *server = NULL;
    TRITONBACKEND_Backend *backend = NULL;
    OK(TRITONBACKEND_ModelName(model, &text));
    EXPECT(*text);
    OK(TRITONBACKEND_ModelVersion(model, &version));
    EXPECT(version == 1);
    OK(TRITONBACKEND_ModelRepository(model, &artifact, &text));
    EXPECT(artifact == TRITONBACKEND_ARTIFACT_FILESYSTEM && *text == '/');
    OK(TRITONBACKEND_ModelAutoCompleteConfig(model, &complete));
    EXPECT(complete);
    FAILS(TRITONBACKEND_ModelConfig(model, 2, &config), INVALID_ARG);
    OK(TRITONBACKEND_ModelConfig(model, 1, &config));
    OK(TRITONBACKEND_ModelSetConfig(model, 1, config));
    FAILS(TRITONBACKEND_ModelSetConfig(model, 2, config), INVALID_ARG);
    OK(TRITONSERVER_MessageDelete(config));
    OK(TRITONBACKEND_ModelServer(model, &server));
    bool live;
    OK(TRITONSERVER_ServerIsLive(server, &live));
    FAILS(TRITONSERVER_ServerLoadModel(server, "other"), UNAVAILABLE);
    OK(TRITONBACKEND_ModelBackend(model, &backend));
    OK(TRITONBACKEND_BackendState(backend, &state));
    EXPECT(state == &mine);
    OK(TRITONBACKEND_ModelState(model, &state));
    EXPECT(!state);
    OK(TRITONBACKEND_ModelSetState(model, &mine));
    TRITONSERVER_BufferAttributes *rows[2] = {usage(), usage()};
    FAILS(TRITONBACKEND_ModelReportMemoryUsage(model, rows, 2), INVALID_ARG);
    FAILS(TRITONBACKEND_ModelReportMemoryUsage(model, NULL, 1), INVALID_ARG);
    FAILS(TRITONBACKEND_ModelReportMemoryUsage(NULL, rows, 1), INVALID_ARG);
    OK(TRITONBACKEND_ModelReportMemoryUsage(model, rows, 1));
    OK(TRITONSERVER_BufferAttributesDelete(rows[0]));
    OK(TRITONSERVER_BufferAttributesDelete(rows[1]));
    return verdict();
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    const char *text = "";
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device = -1;
    int64_t id = -1;
    uint32_t count = 9;
    bool passive = true;
    void *state = &mine;
    TRITONSERVER_Message *policy;
    TRITONBACKEND_Model *model;
    OK(TRITONBACKEND_ModelInstanceName(instance, &text));
    EXPECT(*text);
    OK(TRITONBACKEND_ModelInstanceKind(instance, &kind));
    EXPECT(kind == TRITONSERVER_INSTANCEGROUPKIND_CPU);
    OK(TRITONBACKEND_ModelInstanceDeviceId(instance, &device));
    EXPECT(device == 0);
    OK(TRITONBACKEND_ModelInstanceHostPolicy(instance, &policy));
    OK(TRITONBACKEND_ModelInstanceIsPassive(instance, &passive));
    EXPECT(!passive);
    OK(TRITONBACKEND_ModelInstanceProfileCount(instance, &count));
    EXPECT(count == 0);
    FAILS(TRITONBACKEND_ModelInstanceProfileName(instance, 0, &text), INVALID_ARG);
    OK(TRITONBACKEND_ModelInstanceSecondaryDeviceCount(instance, &count));
    EXPECT(count == 1);
    OK(TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(instance, 0, &text, &id));
    EXPECT(strcmp(text, "KIND_NVDLA") == 0 && id == 3);
    FAILS(TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(instance, 1, &text, &id),
          INVALID_ARG);
    OK(TRITONBACKEND_ModelInstanceModel(instance, &model));
    OK(TRITONBACKEND_ModelState(model, &state));
    EXPECT(state == &mine);
    OK(TRITONBACKEND_ModelInstanceState(instance, &state));
    EXPECT(!state);
    OK(TRITONBACKEND_ModelInstanceSetState(instance, &mine));
    TRITONSERVER_BufferAttributes *row = usage();
    OK(TRITONBACKEND_ModelInstanceReportMemoryUsage(instance, &row, 1));
    FAILS(TRITONBACKEND_ModelInstanceReportMemoryUsage(NULL, &row, 1), INVALID_ARG);
    OK(TRITONSERVER_BufferAttributesDelete(row));
    return verdict();
}

/* -- one request -- */

static void try_sequence(TRITONBACKEND_Request *request)
{
    const char *text;
    uint64_t number;
    uint32_t flags = 9;
    TRITONBACKEND_State *state;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    void *buffer;
    TRITONSERVER_BufferAttributes *attributes;
    OK(TRITONBACKEND_RequestCorrelationIdString(request, &text));
    EXPECT(strcmp(text, "sequence") == 0);
    FAILS(TRITONBACKEND_RequestCorrelationId(request, &number), INVALID_ARG);
    OK(TRITONBACKEND_RequestFlags(request, &flags));
    EXPECT(flags ==
           (TRITONSERVER_REQUEST_FLAG_SEQUENCE_START | TRITONSERVER_REQUEST_FLAG_SEQUENCE_END));
    FAILS(TRITONBACKEND_StateNew(&state, request, "S", TRITONSERVER_TYPE_FP32, NULL, 0),
          INVALID_ARG);
    NEEDS("name", TRITONBACKEND_StateNew, &state, request, NULL, TRITONSERVER_TYPE_FP32, NULL, 0);
    NEEDS("shape", TRITONBACKEND_StateNew, &state, request, "S", TRITONSERVER_TYPE_FP32, NULL, 1);
    FAILS(TRITONBACKEND_StateUpdate(NULL), INVALID_ARG);
    FAILS(TRITONBACKEND_StateBuffer(NULL, &buffer, 1, &type, &id), INVALID_ARG);
    FAILS(TRITONBACKEND_StateBufferAttributes(NULL, &attributes), INVALID_ARG);
}

static void try_request(TRITONBACKEND_Request *request)
{
    const char *text = "";
    uint64_t number = 9;
    uint32_t count = 9;
    bool yes = true;
    size_t bytes = 16;
    TRITONSERVER_ParameterType type;
    const void *value;
    TRITONSERVER_InferenceTrace *trace;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_GPU;
    int64_t id = 4;
    OK(TRITONBACKEND_RequestId(request, &text));
    EXPECT(strcmp(text, "probed") == 0);
    OK(TRITONBACKEND_RequestIsCancelled(request, &yes));
    EXPECT(!yes);
    OK(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request, &number));
    EXPECT(number == 77000000);
    OK(TRITONBACKEND_RequestParameterCount(request, &count));
    EXPECT(count == 4);
    OK(TRITONBACKEND_RequestParameter(request, 0, &text, &type, &value));
    EXPECT(type == TRITONSERVER_PARAMETER_STRING && strcmp(value, "text") == 0);
    OK(TRITONBACKEND_RequestParameter(request, 3, &text, &type, &value));
    EXPECT(type == TRITONSERVER_PARAMETER_DOUBLE && *(const double *)value == 0.5);
    FAILS(TRITONBACKEND_RequestParameter(request, 4, &text, &type, &value), INVALID_ARG);
    OK(TRITONBACKEND_RequestInputCount(request, &count));
    EXPECT(count == 1);
    OK(TRITONBACKEND_RequestInputName(request, 0, &text));
    EXPECT(strcmp(text, "INPUT0") == 0);
    FAILS(TRITONBACKEND_RequestInputName(request, 1, &text), INVALID_ARG);
    OK(TRITONBACKEND_RequestOutputCount(request, &count));
    EXPECT(count == 1);
    OK(TRITONBACKEND_RequestOutputName(request, 0, &text));
    EXPECT(strcmp(text, "OUTPUT0") == 0);
    FAILS(TRITONBACKEND_RequestOutputName(request, 1, &text), INVALID_ARG);
    OK(TRITONBACKEND_RequestOutputBufferProperties(request, "OUTPUT0", &bytes, &memory, &id));
    EXPECT(memory == TRITONSERVER_MEMORY_CPU && id == 0);
    FAILS(TRITONBACKEND_RequestOutputBufferProperties(NULL, NULL, NULL, &memory, &id), INVALID_ARG);
    OK(TRITONBACKEND_RequestTrace(request, &trace));
    EXPECT(!trace);
    FAILS(TRITONBACKEND_RequestTrace(NULL, &trace), INVALID_ARG);
    FAILS(TRITONBACKEND_RequestRelease(request, 0), UNSUPPORTED);
    try_sequence(request);
}

static void try_input(TRITONBACKEND_Request *request, float *ret)
{
    TRITONBACKEND_Input *input;
    TRITONBACKEND_Input *same;
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint32_t rank;
    uint64_t bytes = 0;
    uint32_t pieces = 0;
    const void *data = NULL;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    TRITONSERVER_BufferAttributes *attributes;
    OK(TRITONBACKEND_RequestInput(request, "INPUT0", &input));
    OK(TRITONBACKEND_RequestInputByIndex(request, 0, &same));
    EXPECT(input == same);
    FAILS(TRITONBACKEND_RequestInput(request, "NONE", &same), INVALID_ARG);
    NEEDS("name", TRITONBACKEND_RequestInput, request, NULL, &same);
    FAILS(TRITONBACKEND_RequestInputByIndex(request, 1, &same), INVALID_ARG);
    OK(TRITONBACKEND_InputProperties(input, &name, &datatype, &shape, &rank, &bytes, &pieces));
    EXPECT(datatype == TRITONSERVER_TYPE_FP32 && rank == 1 && shape[0] == 4 && bytes == 16);
    EXPECT(pieces == 2);
    OK(TRITONBACKEND_InputPropertiesForHostPolicy(input, "special", NULL, NULL, NULL, NULL, &bytes,
                                                  &pieces));
    EXPECT(bytes == 16 && pieces == 1);
    OK(TRITONBACKEND_InputPropertiesForHostPolicy(input, NULL, NULL, NULL, NULL, NULL, NULL,
                                                  &pieces));
    EXPECT(pieces == 2);
    OK(TRITONBACKEND_InputBufferForHostPolicy(input, "special", 0, &data, &bytes, &memory, &id));
    EXPECT(bytes == 16);
    FAILS(TRITONBACKEND_InputBufferForHostPolicy(input, "special", 1, &data, &bytes, &memory, &id),
          INVALID_ARG);
    size_t at = 0;
    for (uint32_t i = 0; i < 2; i++) {
        OK(TRITONBACKEND_InputBuffer(input, i, &data, &bytes, &memory, &id));
        memcpy((char *)ret + at, data, bytes);
        at += bytes;
        size_t described = 0;
        OK(TRITONBACKEND_InputBufferAttributes(input, i, &data, &attributes));
        OK(TRITONSERVER_BufferAttributesByteSize(attributes, &described));
        EXPECT(described == bytes);
    }
    FAILS(TRITONBACKEND_InputBuffer(input, 2, &data, &bytes, &memory, &id), INVALID_ARG);
    FAILS(TRITONBACKEND_InputBufferAttributes(input, 2, &data, &attributes), INVALID_ARG);
    FAILS(TRITONBACKEND_InputBufferAttributes(NULL, 0, &data, &attributes), INVALID_ARG);
}

static void try_output(TRITONBACKEND_Response *response, const float *numbers)
{
    TRITONBACKEND_Output *output;
    const int64_t shape[1] = {4};
    const char *name;
    const int64_t *dims;
    uint64_t rank;
    TRITONSERVER_DataType datatype;
    void *buffer;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_GPU;
    int64_t id = 0;
    TRITONSERVER_BufferAttributes *attributes;
    size_t bytes = 0;
    NEEDS("name", TRITONBACKEND_ResponseOutput, response, &output, NULL, TRITONSERVER_TYPE_FP32,
          shape, 1);
    NEEDS("shape", TRITONBACKEND_ResponseOutput, response, &output, "OUTPUT0",
          TRITONSERVER_TYPE_FP32, NULL, 1);
    FAILS(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", (TRITONSERVER_DataType)99,
                                       shape, 1),
          INVALID_ARG);
    OK(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TRITONSERVER_TYPE_FP32, shape,
                                    1));
    OK(TRITONBACKEND_OutputBuffer(output, &buffer, 16, &memory, &id));
    EXPECT(memory == TRITONSERVER_MEMORY_CPU);
    memcpy(buffer, numbers, 16);
    void *second;
    FAILS(TRITONBACKEND_OutputBuffer(output, &second, 16, &memory, &id), ALREADY_EXISTS);
    OK(TRITONBACKEND_OutputBufferAttributes(output, &attributes));
    OK(TRITONSERVER_BufferAttributesByteSize(attributes, &bytes));
    EXPECT(bytes == 16);
    FAILS(TRITONBACKEND_OutputBufferAttributes(NULL, &attributes), INVALID_ARG);
    OK(TRITONBACKEND_InferenceResponseOutput(response, 0, &name, &datatype, &dims, &rank));
    EXPECT(strcmp(name, "OUTPUT0") == 0 && rank == 1 && dims[0] == 4);
    FAILS(TRITONBACKEND_InferenceResponseOutput(response, 1, &name, &datatype, &dims, &rank),
          INVALID_ARG);
    OK(TRITONBACKEND_InferenceResponseOutputByName(response, "OUTPUT0", &datatype, &dims, &rank));
    EXPECT(datatype == TRITONSERVER_TYPE_FP32);
    FAILS(TRITONBACKEND_InferenceResponseOutputByName(response, "NONE", &datatype, &dims, &rank),
          NOT_FOUND);
    OK(TRITONBACKEND_ResponseSetStringParameter(response, "s", "answer"));
    OK(TRITONBACKEND_ResponseSetIntParameter(response, "i", 42));
    OK(TRITONBACKEND_ResponseSetBoolParameter(response, "b", true));
    OK(TRITONBACKEND_ResponseSetDoubleParameter(response, "d", 0.25));
    NEEDS("name", TRITONBACKEND_ResponseSetStringParameter, response, NULL, "answer");
    NEEDS("value", TRITONBACKEND_ResponseSetStringParameter, response, "s", NULL);
    NEEDS("name", TRITONBACKEND_ResponseSetIntParameter, response, NULL, 42);
    NEEDS("name", TRITONBACKEND_ResponseSetBoolParameter, response, NULL, true);
    NEEDS("name", TRITONBACKEND_ResponseSetDoubleParameter, response, NULL, 0.25);
}

/* -- a request of our own, waited for inside Execute -- */

struct nested {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool answered;
    bool released;
    bool good;
};

static TRITONSERVER_Error *nested_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
                                        size_t size, TRITONSERVER_MemoryType type, int64_t id,
                                        void *userp, void **buffer, void **buffer_userp,
                                        TRITONSERVER_MemoryType *actual_type, int64_t *actual_id)
{
    (void)allocator, (void)name, (void)type, (void)id, (void)userp;
    *buffer = malloc(size);
    *buffer_userp = NULL;
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    return NULL;
}

static TRITONSERVER_Error *nested_free(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
                                       void *buffer_userp, size_t size,
                                       TRITONSERVER_MemoryType type, int64_t id)
{
    (void)allocator, (void)buffer_userp, (void)size, (void)type, (void)id;
    free(buffer);
    return NULL;
}

static void nested_answer(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
                          void *userp)
{
    (void)flags;
    struct nested *n = userp;
    bool good = !TRITONSERVER_InferenceResponseError(response);
    OK(TRITONSERVER_InferenceResponseDelete(response)); /* before the allocator may go */
    pthread_mutex_lock(&n->lock);
    n->answered = true;
    n->good = good;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static void nested_released(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
                            void *userp)
{
    (void)request, (void)flags;
    struct nested *n = userp;
    pthread_mutex_lock(&n->lock);
    n->released = true;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static void run_nested(TRITONBACKEND_Model *model, const float *numbers)
{
    struct nested n = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    TRITONSERVER_Server *server;
    TRITONSERVER_InferenceRequest *r;
    TRITONSERVER_ResponseAllocator *a;
    OK(TRITONBACKEND_ModelServer(model, &server));
    OK(TRITONSERVER_ResponseAllocatorNew(&a, nested_alloc, nested_free, NULL));
    OK(TRITONSERVER_InferenceRequestNew(&r, server, "plain", -1));
    OK(TRITONSERVER_InferenceRequestSetReleaseCallback(r, nested_released, &n));
    OK(TRITONSERVER_InferenceRequestSetResponseCallback(r, a, NULL, nested_answer, &n));
    OK(TRITONSERVER_InferenceRequestAddInput(r, "INPUT0", TRITONSERVER_TYPE_FP32,
                                             (const int64_t[]){4}, 1));
    OK(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", numbers, 16,
                                                    TRITONSERVER_MEMORY_CPU, 0));
    OK(TRITONSERVER_ServerInferAsync(server, r, NULL));
    pthread_mutex_lock(&n.lock);
    while (!n.answered || !n.released)
        pthread_cond_wait(&n.changed, &n.lock);
    pthread_mutex_unlock(&n.lock);
    EXPECT(n.good);
    OK(TRITONSERVER_InferenceRequestDelete(r));
    OK(TRITONSERVER_ResponseAllocatorDelete(a));
}

/* -- execution -- */

static void report(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_ResponseFactory *factory,
                   uint64_t start, bool outputs, TRITONSERVER_Error *error)
{
    TRITONBACKEND_ModelInstanceResponseStatistics *s;
    OK(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&s));
    FAILS(TRITONBACKEND_ModelInstanceReportResponseStatistics(s), INVALID_ARG);
    FAILS(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
              s, (TRITONBACKEND_ModelInstance *)s),
          INVALID_ARG);
    OK(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(s, instance));
    OK(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(s, factory));
    OK(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(s, start));
    if (outputs)
        OK(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(s, start + 10));
    OK(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(s, start + 30));
    OK(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(s, error));
    OK(TRITONBACKEND_ModelInstanceReportResponseStatistics(s));
    OK(TRITONBACKEND_ModelInstanceResponseStatisticsDelete(s));
    FAILS(TRITONBACKEND_ModelInstanceReportResponseStatistics(NULL), INVALID_ARG);
    FAILS(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(NULL, instance),
          INVALID_ARG);
    FAILS(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(NULL, factory),
          INVALID_ARG);
    FAILS(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(NULL, 1), INVALID_ARG);
    FAILS(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(NULL, 1), INVALID_ARG);
    FAILS(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(NULL, 1), INVALID_ARG);
    FAILS(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(NULL, NULL), INVALID_ARG);
    OK(TRITONBACKEND_ModelInstanceResponseStatisticsDelete(NULL));
}

/* Three answers after the request was released, the last of them an error, then the end. */
static void answer_later(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request)
{
    TRITONBACKEND_ResponseFactory *factory;
    TRITONBACKEND_Response *response;
    float numbers[4];
    bool yes = true;
    uint64_t start = now_ns();
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    FAILS(TRITONBACKEND_RequestOutputBufferProperties(request, "OUTPUT0", NULL, &memory, &id),
          UNAVAILABLE);
    try_input(request, numbers);
    OK(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    OK(TRITONBACKEND_ModelInstanceReportStatistics(instance, request, true, start, start, start,
                                                   start));
    OK(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    OK(TRITONBACKEND_ResponseFactoryIsCancelled(factory, &yes));
    EXPECT(!yes);
    OK(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
    OK(TRITONBACKEND_ResponseDelete(response));
    for (int i = 0; i < 2; i++) {
        OK(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
        try_output(response, numbers);
        TRITONSERVER_Error *bad = verdict();
        OK(TRITONBACKEND_ResponseSend(response, 0, bad));
        TRITONSERVER_ErrorDelete(bad);
        report(instance, factory, start, i == 0, NULL);
    }
    TRITONSERVER_Error *e = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "the third fails");
    OK(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
    OK(TRITONBACKEND_ResponseSend(response, 0, e));
    report(instance, factory, start, true, e);
    TRITONSERVER_ErrorDelete(e);
    OK(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    OK(TRITONBACKEND_ResponseFactoryDelete(factory));
}

static void answer(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Model *model,
                   TRITONBACKEND_Request *request, bool nested)
{
    TRITONBACKEND_Response *response;
    float numbers[4] = {0};
    uint64_t start = now_ns();
    try_request(request);
    try_input(request, numbers);
    if (nested)
        run_nested(model, numbers);
    OK(TRITONBACKEND_ResponseNew(&response, request));
    try_output(response, numbers);
    FAILS(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, UINT64_MAX, start, start,
                                                           start, start),
          INVALID_ARG);
    TRITONSERVER_Error *e = verdict();
    OK(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, e));
    uint64_t end = now_ns();
    OK(TRITONBACKEND_ModelInstanceReportStatistics(instance, request, !e, start, start, end, end));
    TRITONSERVER_ErrorDelete(e);
    OK(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
    OK(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1, start, start, end, end));
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t request_count)
{
    TRITONBACKEND_Model *model;
    const char *name = "";
    OK(TRITONBACKEND_ModelInstanceModel(instance, &model));
    OK(TRITONBACKEND_ModelName(model, &name));
    for (uint32_t i = 0; i < request_count; i++) {
        if (strcmp(name, "decoupled") == 0)
            answer_later(instance, requests[i]);
        else
            answer(instance, model, requests[i], strncmp(name, "nested", 6) == 0);
    }
    return NULL;
}
