/* A backend that breaks the rules of the C ABI on command, and says in the log whether the
 * server noticed.
 *
 * The request parameter "misdeed" names what to do with a request; without it the INT32 input is
 * answered as it came. A file named fail_ENTRY beside the library makes that entry return an
 * error, crash_ENTRY makes it crash; one named hang_ModelInstanceFinalize makes it never return. */
#include "triton/core/tritonbackend.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say(const char *verdict, const char *what, const char *detail)
{
    char text[600];
    snprintf(text, sizeof(text), "%s %s: %s", verdict, what, detail);
    TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, __FILE__, __LINE__, text);
}

/* The call broke a rule: the server must say so, by INVALID_ARG and nothing worse. */
static void refused_at(TRITONSERVER_Error *e, const char *call)
{
    if (e && TRITONSERVER_ErrorCode(e) == TRITONSERVER_ERROR_INVALID_ARG)
        say("NOTICED", call, TRITONSERVER_ErrorMessage(e));
    else
        say("UNNOTICED", call, e ? TRITONSERVER_ErrorMessage(e) : "no error");
    TRITONSERVER_ErrorDelete(e);
}
#define REFUSED(call) refused_at((call), #call)

static void must(TRITONSERVER_Error *e, const char *call)
{
    if (e)
        say("UNNOTICED", call, TRITONSERVER_ErrorMessage(e));
    TRITONSERVER_ErrorDelete(e);
}
#define OK(call) must((call), #call)

static TRITONSERVER_Error *fail(const char *dir, const char *entry)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/crash_%s", dir, entry);
    if (access(path, F_OK) == 0)
        raise(SIGSEGV);
    snprintf(path, sizeof(path), "%s/fail_%s", dir, entry);
    if (access(path, F_OK) != 0)
        return NULL;
    snprintf(path, sizeof(path), "told to fail in %s", entry);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, path);
}

static TRITONSERVER_Error *fail_backend(TRITONBACKEND_Backend *b, const char *entry)
{
    TRITONBACKEND_ArtifactType type;
    const char *dir;
    OK(TRITONBACKEND_BackendArtifacts(b, &type, &dir));
    return fail(dir, entry);
}

static TRITONSERVER_Error *fail_model(TRITONBACKEND_Model *m, const char *entry)
{
    TRITONBACKEND_Backend *b;
    OK(TRITONBACKEND_ModelBackend(m, &b));
    return fail_backend(b, entry);
}

static TRITONSERVER_Error *fail_instance(TRITONBACKEND_ModelInstance *i, const char *entry)
{
    TRITONBACKEND_Model *m;
    OK(TRITONBACKEND_ModelInstanceModel(i, &m));
    return fail_model(m, entry);
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    TRITONSERVER_Error *e = fail_backend(backend, "ApiVersion");
    if (!e)
        return fail_backend(backend, "Initialize");
    TRITONSERVER_ErrorDelete(e);
    uint32_t major, minor;
    OK(TRITONBACKEND_ApiVersion(&major, &minor));
    char text[200];
    snprintf(text, sizeof(text),
             "API version %u.%u of the server is not 99.0, which I was made for", major, minor);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, text);
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
    say("FINALIZED", "backend", "");
    return fail_backend(backend, "Finalize");
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend,
                                  TRITONBACKEND_BackendAttribute *attributes)
{
    (void)attributes;
    return fail_backend(backend, "GetBackendAttribute");
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    return fail_model(model, "ModelInitialize");
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    say("FINALIZED", "model", "");
    return fail_model(model, "ModelFinalize");
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    return fail_instance(instance, "ModelInstanceInitialize");
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model;
    TRITONBACKEND_Backend *backend;
    TRITONBACKEND_ArtifactType type;
    const char *dir;
    char path[600];
    say("FINALIZED", "instance", "");
    OK(TRITONBACKEND_ModelInstanceModel(instance, &model));
    OK(TRITONBACKEND_ModelBackend(model, &backend));
    OK(TRITONBACKEND_BackendArtifacts(backend, &type, &dir));
    snprintf(path, sizeof(path), "%s/hang_ModelInstanceFinalize", dir);
    if (access(path, F_OK) == 0) {
        say("HANGS", "hang_ModelInstanceFinalize", "never returns");
        for (;;)
            pause();
    }
    return fail(dir, "ModelInstanceFinalize");
}

/* A response with the input as output; not sent. */
static TRITONBACKEND_Response *echo(TRITONBACKEND_Request *request, TRITONBACKEND_Output **output)
{
    TRITONBACKEND_Input *input;
    const int64_t *shape;
    uint32_t rank;
    TRITONSERVER_DataType datatype;
    const void *data;
    uint64_t size;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    OK(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
    OK(TRITONBACKEND_InputProperties(input, NULL, &datatype, &shape, &rank, &size, NULL));
    OK(TRITONBACKEND_InputBuffer(input, 0, &data, &size, &memory, &device));
    TRITONBACKEND_Response *response = NULL;
    void *buffer;
    OK(TRITONBACKEND_ResponseNew(&response, request));
    OK(TRITONBACKEND_ResponseOutput(response, output, "OUT", datatype, shape, rank));
    OK(TRITONBACKEND_OutputBuffer(*output, &buffer, size, &memory, &device));
    memcpy(buffer, data, size);
    return response;
}

static void answer(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Output *output;
    OK(TRITONBACKEND_ResponseSend(echo(request, &output), TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                                  NULL));
}

static void release(TRITONBACKEND_Request *request)
{
    OK(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

static void released_twice(TRITONBACKEND_Request *request)
{
    answer(request);
    release(request);
    REFUSED(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

static void sent_twice(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Output *output;
    TRITONBACKEND_Response *response = echo(request, &output);
    OK(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    REFUSED(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    REFUSED(TRITONBACKEND_ResponseDelete(response));
    REFUSED(TRITONBACKEND_ResponseSetIntParameter(response, "n", 1));
    void *buffer;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    REFUSED(TRITONBACKEND_OutputBuffer(output, &buffer, 4, &memory, &device));
    release(request);
}

static void sent_after_final(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Output *output;
    TRITONBACKEND_Response *late = echo(request, &output);
    TRITONBACKEND_Response *later = echo(request, &output);
    TRITONBACKEND_ResponseFactory *factory;
    OK(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    answer(request);
    REFUSED(TRITONBACKEND_ResponseSend(late, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    REFUSED(TRITONBACKEND_ResponseSend(later, 0, NULL));
    REFUSED(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    OK(TRITONBACKEND_ResponseFactoryDelete(factory));
    release(request);
}

static void used_after_release(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *input;
    TRITONBACKEND_Response *response;
    TRITONBACKEND_ResponseFactory *factory;
    const char *text;
    const void *data;
    uint64_t size;
    TRITONSERVER_MemoryType memory;
    int64_t device;
    OK(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
    answer(request);
    release(request);
    REFUSED(TRITONBACKEND_RequestId(request, &text));
    REFUSED(TRITONBACKEND_ResponseNew(&response, request));
    REFUSED(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    REFUSED(TRITONBACKEND_InputProperties(input, NULL, NULL, NULL, NULL, &size, NULL));
    REFUSED(TRITONBACKEND_InputBuffer(input, 0, &data, &size, &memory, &device));
}

static void factory_deleted_twice(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_ResponseFactory *factory;
    TRITONBACKEND_Response *response;
    bool cancelled;
    OK(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    OK(TRITONBACKEND_ResponseFactoryDelete(factory));
    REFUSED(TRITONBACKEND_ResponseFactoryDelete(factory));
    REFUSED(TRITONBACKEND_ResponseNewFromFactory(&response, factory));
    REFUSED(TRITONBACKEND_ResponseFactoryIsCancelled(factory, &cancelled));
    answer(request);
    release(request);
}

static void wrong_handles(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Output *output;
    TRITONBACKEND_Response *response = echo(request, &output);
    uint64_t on_stack[16] = {0};
    uint32_t count;
    REFUSED(TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request *)response, &count));
    REFUSED(TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request *)on_stack, &count));
    REFUSED(TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request *)1, &count));
    REFUSED(TRITONBACKEND_RequestInputCount(NULL, &count));
    OK(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    release(request);
}

/* Two threads give the same request back at one time: one of them does. */
struct race {
    TRITONBACKEND_Request *request;
    pthread_barrier_t start;
    int released[2];
};

struct racer {
    struct race *race;
    int index;
};

static void *run_racer(void *arg)
{
    struct racer *me = arg;
    pthread_barrier_wait(&me->race->start);
    TRITONSERVER_Error *e =
        TRITONBACKEND_RequestRelease(me->race->request, TRITONSERVER_REQUEST_RELEASE_ALL);
    me->race->released[me->index] = !e;
    TRITONSERVER_ErrorDelete(e);
    return NULL;
}

static void released_by_two(TRITONBACKEND_Request *request)
{
    struct race race = {.request = request};
    struct racer racers[2] = {{&race, 0}, {&race, 1}};
    pthread_t threads[2];
    answer(request);
    pthread_barrier_init(&race.start, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run_racer, &racers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&race.start);
    say(race.released[0] + race.released[1] == 1 ? "NOTICED" : "UNNOTICED", "released_by_two", "");
}

static void no_response(TRITONBACKEND_Request *request)
{
    release(request);
}

static void never_final(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Output *output;
    OK(TRITONBACKEND_ResponseSend(echo(request, &output), 0, NULL));
    release(request);
}

/* The final flag without any response before it. */
static void only_final(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_ResponseFactory *factory;
    OK(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    OK(TRITONBACKEND_ResponseFactorySendFlags(factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    OK(TRITONBACKEND_ResponseFactoryDelete(factory));
    release(request);
}

/* Values that an ABI newer than this server's may have. */
static void newer_code(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Output *output;
    TRITONBACKEND_Response *response = echo(request, &output);
    TRITONSERVER_Error *e =
        TRITONSERVER_ErrorNew((TRITONSERVER_Error_Code)77, "with a code of its own");
    OK(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, e));
    TRITONSERVER_ErrorDelete(e);
    release(request);
}

static void newer_flags(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Output *output;
    OK(TRITONBACKEND_ResponseSend(echo(request, &output),
                                  TRITONSERVER_RESPONSE_COMPLETE_FINAL | 0x80000100u, NULL));
    release(request);
}

/* An output whose shape says more than its memory holds, or that has no memory at all. */
static void wrong_output(TRITONBACKEND_Request *request, uint64_t bytes)
{
    const int64_t shape[1] = {1000000};
    TRITONBACKEND_Response *response;
    TRITONBACKEND_Output *output;
    void *buffer;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    OK(TRITONBACKEND_ResponseNew(&response, request));
    OK(TRITONBACKEND_ResponseOutput(response, &output, "OUT", TRITONSERVER_TYPE_INT32, shape, 1));
    if (bytes)
        OK(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &device));
    OK(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
    release(request);
}

static void output_too_small(TRITONBACKEND_Request *request)
{
    wrong_output(request, 4);
}

static void output_without_memory(TRITONBACKEND_Request *request)
{
    wrong_output(request, 0);
}

static void keep_response(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Output *output;
    (void)echo(request, &output);
    release(request);
}

/* As if the pointer was lost. */
static void keep_factory(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_ResponseFactory *factory;
    OK(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    answer(request);
    release(request);
}

/* The factory of a request that was over long ago. */
static TRITONBACKEND_ResponseFactory *forgotten;

static void forget_factory(TRITONBACKEND_Request *request)
{
    OK(TRITONBACKEND_ResponseFactoryNew(&forgotten, request));
    answer(request);
    release(request);
}

static void remember_factory(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Response *response;
    bool cancelled;
    REFUSED(TRITONBACKEND_ResponseFactoryIsCancelled(forgotten, &cancelled));
    REFUSED(TRITONBACKEND_ResponseNewFromFactory(&response, forgotten));
    REFUSED(
        TRITONBACKEND_ResponseFactorySendFlags(forgotten, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    REFUSED(TRITONBACKEND_ResponseFactoryDelete(forgotten));
    answer(request);
    release(request);
}

static void keep_request(TRITONBACKEND_Request *request)
{
    (void)request;
}

static void crash(TRITONBACKEND_Request *request)
{
    (void)request;
    raise(SIGSEGV);
}

static void *answer_aside(void *request)
{
    answer(request);
    release(request);
    return NULL;
}

/* The request is over, but Execute never returns. */
static void answer_and_hang(TRITONBACKEND_Request *request)
{
    pthread_t thread;
    pthread_create(&thread, NULL, answer_aside, request);
    pthread_join(thread, NULL);
    say("HANGS", "answer_and_hang", "never returns");
    for (;;)
        pause();
}

static TRITONBACKEND_ModelInstance *executing; /* there is one */

/* Once for each request: it is executed again, and what its first execution took is reported
 * after it was given back. No misdeed: so do backends that are made for the reference. */
static void reported_when_rescheduled(TRITONBACKEND_Request *request)
{
    static bool again;
    again = !again;
    if (!again) {
        answer(request);
        release(request);
        return;
    }
    OK(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
    OK(TRITONBACKEND_ModelInstanceReportStatistics(executing, request, true, 1, 2, 3, 4));
    uint32_t count;
    REFUSED(TRITONBACKEND_RequestInputCount(request, &count));
}

/* It would be executed again for ever. */
static void rescheduled_after_final(TRITONBACKEND_Request *request)
{
    answer(request);
    REFUSED(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
    REFUSED(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

static const struct misdeed {
    const char *name;
    void (*run)(TRITONBACKEND_Request *);
    const char *error; /* what Execute returns afterwards; NULL = none */
} misdeeds[] = {
    {"released_twice", released_twice, NULL},
    {"sent_twice", sent_twice, NULL},
    {"sent_after_final", sent_after_final, NULL},
    {"used_after_release", used_after_release, NULL},
    {"factory_deleted_twice", factory_deleted_twice, NULL},
    {"wrong_handles", wrong_handles, NULL},
    {"released_by_two", released_by_two, NULL},
    {"no_response", no_response, NULL},
    {"never_final", never_final, NULL},
    {"only_final", only_final, NULL},
    {"newer_code", newer_code, NULL},
    {"newer_flags", newer_flags, NULL},
    {"output_too_small", output_too_small, NULL},
    {"output_without_memory", output_without_memory, NULL},
    {"keep_response", keep_response, NULL},
    {"keep_request", keep_request, NULL},
    {"keep_factory", keep_factory, NULL},
    {"crash", crash, NULL},
    {"answer_and_hang", answer_and_hang, NULL},
    {"forget_factory", forget_factory, NULL},
    {"remember_factory", remember_factory, NULL},
    {"reported_when_rescheduled", reported_when_rescheduled, NULL},
    {"rescheduled_after_final", rescheduled_after_final, NULL},
    {"error", keep_request, "told to fail in Execute"},
    {"error_after_final", answer, "told to fail after the final response"},
    {"error_after_release", released_twice, "told to fail after the release"},
};

static const struct misdeed *find_misdeed(TRITONBACKEND_Request *request)
{
    uint32_t count;
    OK(TRITONBACKEND_RequestParameterCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *key;
        const void *value;
        TRITONSERVER_ParameterType type;
        OK(TRITONBACKEND_RequestParameter(request, i, &key, &type, &value));
        for (size_t k = 0; k < sizeof(misdeeds) / sizeof(misdeeds[0]); k++)
            if (strcmp(key, "misdeed") == 0 && strcmp(value, misdeeds[k].name) == 0)
                return &misdeeds[k];
    }
    return NULL;
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t count)
{
    executing = instance;
    const char *error = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct misdeed *m = find_misdeed(requests[i]);
        if (m) {
            m->run(requests[i]);
            error = m->error;
        } else {
            answer(requests[i]);
            release(requests[i]);
        }
        requests[i] = NULL;
    }
    return error ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, error) : NULL;
}
