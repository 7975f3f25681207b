/* A backend that does what the first number of a request says: dies in several ways, hangs,
 * fails, answers late or often.
 *
 * Models have an INPUT0 and an OUTPUT0 of INT32; numbers that mean nothing below are answered
 * with themselves. Parameters of a model: die_in, fail_in ("model", "instance", "end") and
 * complete ("yes": the configuration is filled in). */
#include "triton/core/tritonbackend.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum deed {
    ECHO = 0,
    SEGFAULT = -1,
    ABORT = -2,
    EXIT = -3,
    KILL = -4,
    HANG = -5,
    FAIL = -6,             /* Execute returns an error */
    ANSWER_AND_DIE = -7,   /* the answer is sent, the request released, then it dies */
    FORK_AND_DIE = -8,     /* a grandchild holds everything open */
    AWAIT_CANCEL = -9,     /* until the request is cancelled */
    GARBAGE = -10,         /* to whoever listens at the other ends of its sockets */
    SAY = -11,             /* a line of each level */
    LATER = -12,           /* answered by another thread after Execute */
    PARAMETERS = -13,      /* the request's come back with the response */
    OUTPUT_ERROR = -14,    /* a response that is an error */
    TELL_IDS = -15,        /* id, flags, correlation id, as parameters */
    RELEASE_AND_DIE = -16, /* the request is released, not answered, then it dies */
    HANG_WHEN_ENDED = -17, /* from now on finalizing hangs */
    RESCHEDULE = -18,      /* answered when it is executed the third time */
    REPEAT = -100, /* and below: -100 - n responses by another thread, of a decoupled model */
};

static volatile int hang_when_ended;
static volatile int executions; /* of RESCHEDULE */

static TRITONSERVER_Error *error(const char *text)
{
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, text);
}

static void give_up(TRITONSERVER_Error *e)
{
    if (!e)
        return;
    fprintf(stderr, "crasher: %s\n", TRITONSERVER_ErrorMessage(e));
    abort();
}

static void hang(void)
{
    for (;;)
        pause();
}

/* Whether the configuration has "key": {"string_value": "value"}. */
static int says(TRITONBACKEND_Model *model, const char *key, const char *value)
{
    TRITONSERVER_Message *message;
    const char *json;
    size_t len;
    char wanted[128];
    give_up(TRITONBACKEND_ModelConfig(model, 1, &message));
    give_up(TRITONSERVER_MessageSerializeToJson(message, &json, &len));
    snprintf(wanted, sizeof(wanted), "\"%s\":{\"string_value\":\"%s\"}", key, value);
    int found = strstr(json, wanted) != NULL;
    TRITONSERVER_MessageDelete(message);
    return found;
}

static TRITONSERVER_Error *complete(TRITONBACKEND_Model *model)
{
    static const char json[] =
        "{\"name\":\"completed\",\"backend\":\"crasher\",\"max_batch_size\":4,"
        "\"input\":[{\"name\":\"INPUT0\",\"data_type\":\"TYPE_INT32\",\"dims\":[-1]}],"
        "\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":\"TYPE_INT32\",\"dims\":[-1]}],"
        "\"parameters\":{\"ISOLATION\":{\"string_value\":\"process\"}}}";
    TRITONSERVER_Message *message;
    bool wanted;
    give_up(TRITONBACKEND_ModelAutoCompleteConfig(model, &wanted));
    if (!wanted)
        return error("nobody wants the configuration completed");
    give_up(TRITONSERVER_MessageNewFromSerializedJson(&message, json, sizeof(json) - 1));
    TRITONSERVER_Error *e = TRITONBACKEND_ModelSetConfig(model, 1, message);
    TRITONSERVER_MessageDelete(message);
    return e;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    if (says(model, "die_in", "model"))
        raise(SIGKILL);
    if (says(model, "fail_in", "model"))
        return error("the model is not to the backend's liking");
    if (says(model, "complete", "yes"))
        return complete(model);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model;
    give_up(TRITONBACKEND_ModelInstanceModel(instance, &model));
    if (says(model, "die_in", "instance"))
        raise(SIGKILL);
    if (says(model, "fail_in", "instance"))
        return error("the instance is not to the backend's liking");
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model;
    give_up(TRITONBACKEND_ModelInstanceModel(instance, &model));
    if (hang_when_ended)
        hang();
    if (says(model, "fail_in", "end"))
        return error("the instance does not want to end");
    return NULL;
}

static TRITONBACKEND_Input *input_of(TRITONBACKEND_Request *request, const int64_t **shape,
                                     uint32_t *rank, uint64_t *bytes)
{
    TRITONBACKEND_Input *input;
    TRITONSERVER_DataType type;
    const char *name;
    uint32_t buffers;
    give_up(TRITONBACKEND_RequestInput(request, "INPUT0", &input));
    give_up(TRITONBACKEND_InputProperties(input, &name, &type, shape, rank, bytes, &buffers));
    return input;
}

static int32_t first_number(TRITONBACKEND_Request *request)
{
    const int64_t *shape;
    uint32_t rank;
    uint64_t bytes;
    const void *data;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    int32_t n = 0;
    TRITONBACKEND_Input *input = input_of(request, &shape, &rank, &bytes);
    if (bytes < sizeof(n))
        return 0;
    give_up(TRITONBACKEND_InputBuffer(input, 0, &data, &bytes, &memory, &device));
    memcpy(&n, data, sizeof(n));
    return n;
}

static void put_parameters(TRITONBACKEND_Response *response, TRITONBACKEND_Request *request)
{
    uint32_t count;
    give_up(TRITONBACKEND_RequestParameterCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *key;
        TRITONSERVER_ParameterType type;
        const void *value;
        give_up(TRITONBACKEND_RequestParameter(request, i, &key, &type, &value));
        if (type == TRITONSERVER_PARAMETER_STRING)
            give_up(TRITONBACKEND_ResponseSetStringParameter(response, key, value));
        else if (type == TRITONSERVER_PARAMETER_INT)
            give_up(TRITONBACKEND_ResponseSetIntParameter(response, key, *(const int64_t *)value));
        else if (type == TRITONSERVER_PARAMETER_BOOL)
            give_up(TRITONBACKEND_ResponseSetBoolParameter(response, key, *(const bool *)value));
        else if (type == TRITONSERVER_PARAMETER_DOUBLE)
            give_up(
                TRITONBACKEND_ResponseSetDoubleParameter(response, key, *(const double *)value));
    }
}

static void put_ids(TRITONBACKEND_Response *response, TRITONBACKEND_Request *request)
{
    const char *id;
    uint64_t correlation = 0;
    uint32_t flags;
    uint64_t timeout;
    give_up(TRITONBACKEND_RequestId(request, &id));
    give_up(TRITONBACKEND_RequestFlags(request, &flags));
    give_up(TRITONBACKEND_RequestCorrelationId(request, &correlation));
    give_up(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request, &timeout));
    give_up(TRITONBACKEND_ResponseSetStringParameter(response, "id", id));
    give_up(TRITONBACKEND_ResponseSetIntParameter(response, "flags", flags));
    give_up(TRITONBACKEND_ResponseSetIntParameter(response, "correlation", (int64_t)correlation));
    give_up(TRITONBACKEND_ResponseSetIntParameter(response, "timeout", (int64_t)timeout));
}

/* The input as output. */
static void echo(TRITONBACKEND_Response *response, TRITONBACKEND_Request *request)
{
    const int64_t *shape;
    uint32_t rank;
    uint64_t bytes;
    TRITONBACKEND_Output *output;
    void *to;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    TRITONBACKEND_Input *input = input_of(request, &shape, &rank, &bytes);
    give_up(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TRITONSERVER_TYPE_INT32,
                                         shape, rank));
    TRITONSERVER_Error *e = TRITONBACKEND_OutputBuffer(output, &to, bytes, &memory, &device);
    if (e) {
        give_up(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, e));
        TRITONSERVER_ErrorDelete(e);
        return;
    }
    const void *data;
    if (bytes) {
        give_up(TRITONBACKEND_InputBuffer(input, 0, &data, &bytes, &memory, &device));
        memcpy(to, data, bytes);
    }
    give_up(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL));
}

static void release(TRITONBACKEND_Request *request)
{
    give_up(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

static void *answer_later(void *arg)
{
    TRITONBACKEND_Response *response;
    give_up(TRITONBACKEND_ResponseNew(&response, arg));
    echo(response, arg);
    release(arg);
    return NULL;
}

struct repeat {
    TRITONBACKEND_ResponseFactory *factory;
    int32_t times;
};

static void *answer_often(void *arg)
{
    struct repeat *r = arg;
    for (int32_t i = 0; i < r->times; i++) {
        TRITONBACKEND_Response *response;
        TRITONBACKEND_Output *output;
        int64_t shape[1] = {1};
        void *to;
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        int64_t device = 0;
        give_up(TRITONBACKEND_ResponseNewFromFactory(&response, r->factory));
        give_up(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TRITONSERVER_TYPE_INT32,
                                             shape, 1));
        give_up(TRITONBACKEND_OutputBuffer(output, &to, sizeof(i), &memory, &device));
        memcpy(to, &i, sizeof(i));
        give_up(TRITONBACKEND_ResponseSend(response, 0, NULL));
    }
    give_up(
        TRITONBACKEND_ResponseFactorySendFlags(r->factory, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    give_up(TRITONBACKEND_ResponseFactoryDelete(r->factory));
    free(r);
    return NULL;
}

static void on_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, arg) != 0)
        abort();
    pthread_detach(thread);
}

static void repeat(TRITONBACKEND_Request *request, int32_t times)
{
    struct repeat *r = malloc(sizeof(*r));
    if (!r)
        abort();
    r->times = times;
    give_up(TRITONBACKEND_ResponseFactoryNew(&r->factory, request));
    on_thread(answer_often, r);
    release(request);
}

static void await_cancel(TRITONBACKEND_Request *request)
{
    bool cancelled = false;
    TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "crasher.c", 1, "waits to be cancelled");
    while (!cancelled) {
        poll(NULL, 0, 1); /* allowed: between two looks at what tells nobody */
        give_up(TRITONBACKEND_RequestIsCancelled(request, &cancelled));
    }
    TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "crasher.c", 1, "saw that it was cancelled");
}

static void die(int32_t deed)
{
    switch (deed) {
    case SEGFAULT:
        *(volatile int *)(uintptr_t)4096 = 1; /* nothing is there */
        break;
    case ABORT:
        abort();
    case EXIT:
        _exit(7);
    case FORK_AND_DIE:
        if (fork() == 0)
            hang();
        raise(SIGKILL);
        break;
    default:
        raise(SIGKILL);
    }
}

static void talk_garbage(void)
{
    char junk[200];
    for (size_t i = 0; i < sizeof(junk); i++)
        junk[i] = (char)(i * 37);
    for (int fd = 3; fd < 64; fd++)
        (void)send(fd, junk, sizeof(junk), MSG_NOSIGNAL | MSG_DONTWAIT);
    hang();
}

static void say(void)
{
    TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "crasher.c", 11, "an \"informative\" line");
    TRITONSERVER_LogMessage(TRITONSERVER_LOG_WARN, "crasher.c", 12, "a warning");
    TRITONSERVER_LogMessage(TRITONSERVER_LOG_ERROR, "crasher.c", 13, "an error of its own");
}

static void report(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    give_up(TRITONBACKEND_ModelInstanceReportStatistics(instance, request, true, now - 3000,
                                                        now - 2000, now - 1000, now));
    give_up(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1, now - 3000, now - 2000,
                                                             now - 1000, now));
}

static void answer(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
                   int32_t deed)
{
    TRITONBACKEND_Response *response;
    give_up(TRITONBACKEND_ResponseNew(&response, request));
    if (deed == PARAMETERS)
        put_parameters(response, request);
    if (deed == TELL_IDS)
        put_ids(response, request);
    if (deed == OUTPUT_ERROR) {
        TRITONSERVER_Error *e =
            TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "come back tomorrow");
        give_up(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, e));
        TRITONSERVER_ErrorDelete(e);
    } else {
        echo(response, request);
        report(instance, request);
    }
    release(request);
}

static void do_deed(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request)
{
    int32_t deed = first_number(request);
    if (deed <= REPEAT) {
        repeat(request, REPEAT - deed);
        return;
    }
    if (deed == LATER) {
        on_thread(answer_later, request);
        return;
    }
    if (deed == RESCHEDULE && ++executions % 3) {
        give_up(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
        return;
    }
    if (deed == RELEASE_AND_DIE)
        release(request);
    if (deed == SEGFAULT || deed == ABORT || deed == EXIT || deed == KILL || deed == FORK_AND_DIE ||
        deed == RELEASE_AND_DIE)
        die(deed);
    if (deed == HANG) {
        TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "crasher.c", 2, "hangs from here on");
        hang();
    }
    if (deed == GARBAGE)
        talk_garbage();
    if (deed == SAY)
        say();
    if (deed == HANG_WHEN_ENDED)
        hang_when_ended = 1;
    if (deed == AWAIT_CANCEL)
        await_cancel(request);
    answer(instance, request, deed);
    if (deed == ANSWER_AND_DIE)
        die(KILL);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    if (first_number(requests[0]) == FAIL)
        return error("the batch is not to the backend's liking");
    for (uint32_t i = 0; i < count; i++)
        do_deed(instance, requests[i]);
    return NULL;
}
