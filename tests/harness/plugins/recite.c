/* recite: a decoupled backend that answers a request as often, and in such a way, as its
 * parameters say: the same file in both servers.
 *
 * Each input comes back as an output, unchanged: "in" in its name becomes "out", "IN" "OUT". An
 * output INDEX is not of an input: the number of the response, one INT32. Parameters:
 *   count     responses; 1. Numbers may be given as text
 *   fail_at   the number of the one that is an error, of which nothing follows when `stop` is true
 *   joined    the last response carries the final flag; else the flag comes alone
 *   told      each response has parameters, one a type
 *   refuse    Execute fails
 *   mark      a file; responses are sent without end until the request is cancelled, by a thread
 *             of its own, which then writes how many there were. The file MARK.begun is there
 *             from when it begins
 *   quiet     with `mark`: no response before that
 *   slow      with `mark`: a thousand responses a second at most, which any client takes */
#include "triton/core/tritonbackend.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_INPUTS = 8 };

struct input {
    char name[64]; /* of its output */
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint32_t rank;
    const void *data;
    uint64_t bytes;
};

struct order {
    TRITONBACKEND_Request *request;
    TRITONBACKEND_ResponseFactory *factory;
    struct input inputs[MOST_INPUTS];
    uint32_t input_count;
    int64_t count;
    int64_t fail_at;
    bool stop;
    bool joined;
    bool told;
    bool refuse;
    bool quiet;
    bool slow;
    bool index;
    const char *mark;
};

static void must(TRITONSERVER_Error *e)
{
    if (!e)
        return;
    fprintf(stderr, "recite backend: %s\n", TRITONSERVER_ErrorMessage(e));
    abort();
}

static void obey(struct order *o, const char *name, TRITONSERVER_ParameterType type,
                 const void *value)
{
    bool yes = type == TRITONSERVER_PARAMETER_BOOL && *(const bool *)value;
    bool text = type == TRITONSERVER_PARAMETER_STRING;
    int64_t number = type == TRITONSERVER_PARAMETER_INT ? *(const int64_t *)value
                     : text                             ? strtoll(value, NULL, 10)
                                                        : 0;
    if (strcmp(name, "count") == 0)
        o->count = number;
    else if (strcmp(name, "fail_at") == 0)
        o->fail_at = number;
    else if (strcmp(name, "stop") == 0)
        o->stop = yes;
    else if (strcmp(name, "joined") == 0)
        o->joined = yes;
    else if (strcmp(name, "told") == 0)
        o->told = yes;
    else if (strcmp(name, "refuse") == 0)
        o->refuse = yes;
    else if (strcmp(name, "quiet") == 0)
        o->quiet = yes || text;
    else if (strcmp(name, "slow") == 0)
        o->slow = yes || text;
    else if (strcmp(name, "mark") == 0 && text)
        o->mark = value;
}

static void rename_input(char to[64], const char *name)
{
    const char *at = strstr(name, "in");
    if (!at)
        at = strstr(name, "IN");
    size_t before = at ? (size_t)(at - name) : strlen(name);
    snprintf(to, 64, "%.*s%s%s", (int)before, name,
             !at          ? ""
             : *at == 'i' ? "out"
                          : "OUT",
             at ? at + 2 : "");
}

static void read_input(struct input *to, TRITONBACKEND_Request *request, uint32_t index)
{
    TRITONBACKEND_Input *input;
    const char *name;
    uint32_t pieces;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    must(TRITONBACKEND_RequestInputByIndex(request, index, &input));
    must(TRITONBACKEND_InputProperties(input, &name, &to->datatype, &to->shape, &to->rank,
                                       &to->bytes, &pieces));
    rename_input(to->name, name);
    if (!pieces)
        return;
    uint64_t size; /* the tests send each in one piece */
    must(TRITONBACKEND_InputBuffer(input, 0, &to->data, &size, &memory, &device));
}

static void read_order(struct order *o, TRITONBACKEND_Request *request)
{
    uint32_t count;
    *o = (struct order){.request = request, .count = 1, .fail_at = -1};
    must(TRITONBACKEND_RequestParameterCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        TRITONSERVER_ParameterType type;
        const void *value;
        must(TRITONBACKEND_RequestParameter(request, i, &name, &type, &value));
        obey(o, name, type, value);
    }
    must(TRITONBACKEND_RequestInputCount(request, &o->input_count));
    if (o->input_count > MOST_INPUTS)
        o->input_count = MOST_INPUTS;
    for (uint32_t i = 0; i < o->input_count; i++)
        read_input(&o->inputs[i], request, i);
    must(TRITONBACKEND_RequestOutputCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        must(TRITONBACKEND_RequestOutputName(request, i, &name));
        o->index = o->index || strcmp(name, "INDEX") == 0;
    }
    must(TRITONBACKEND_ResponseFactoryNew(&o->factory, request));
}

static TRITONSERVER_Error *put(TRITONBACKEND_Response *response, const char *name,
                               TRITONSERVER_DataType datatype, const int64_t *shape, uint32_t rank,
                               const void *data, uint64_t bytes)
{
    TRITONBACKEND_Output *output;
    void *buffer = NULL;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t device = 0;
    must(TRITONBACKEND_ResponseOutput(response, &output, name, datatype, shape, rank));
    TRITONSERVER_Error *e = TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &device);
    if (!e && bytes)
        memcpy(buffer, data, bytes);
    return e;
}

static TRITONSERVER_Error *fill(const struct order *o, TRITONBACKEND_Response *response, int64_t i)
{
    const int64_t one = 1;
    int32_t number = (int32_t)i;
    TRITONSERVER_Error *e = NULL;
    for (uint32_t k = 0; !e && k < o->input_count; k++) {
        const struct input *in = &o->inputs[k];
        e = put(response, in->name, in->datatype, in->shape, in->rank, in->data, in->bytes);
    }
    if (!e && o->index)
        e = put(response, "INDEX", TRITONSERVER_TYPE_INT32, &one, 1, &number, sizeof(number));
    if (!e && o->told) {
        must(TRITONBACKEND_ResponseSetStringParameter(response, "told_text", "a \"word\""));
        must(TRITONBACKEND_ResponseSetIntParameter(response, "told_number", -5));
        must(TRITONBACKEND_ResponseSetBoolParameter(response, "told_truth", true));
    }
    return e;
}

/* false: it is the last. */
static bool send_one(const struct order *o, int64_t i, bool last)
{
    TRITONBACKEND_Response *response;
    must(TRITONBACKEND_ResponseNewFromFactory(&response, o->factory));
    TRITONSERVER_Error *e = NULL;
    bool fails = i == o->fail_at;
    if (fails)
        e = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                  "recited to the point of failure");
    else
        e = fill(o, response, i);
    last = last || (fails && o->stop);
    must(TRITONBACKEND_ResponseSend(
        response, last && o->joined ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, e));
    TRITONSERVER_ErrorDelete(e);
    return !last;
}

static void end(struct order *o, bool sent)
{
    if (!sent || !o->joined)
        must(TRITONBACKEND_ResponseFactorySendFlags(o->factory,
                                                    TRITONSERVER_RESPONSE_COMPLETE_FINAL));
    must(TRITONBACKEND_ResponseFactoryDelete(o->factory));
    must(TRITONBACKEND_RequestRelease(o->request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

static void recite(struct order *o)
{
    int64_t i = 0;
    while (i < o->count && send_one(o, i, i + 1 == o->count))
        i++;
    end(o, i > 0 || o->count > 0);
}

/* Writes the file of `mark`, or, with an `end`, the one beside it. */
static void leave_mark(const struct order *o, const char *end, int64_t count)
{
    char path[4096];
    if (snprintf(path, sizeof(path), "%s%s", o->mark, end) >= (int)sizeof(path))
        abort();
    FILE *f = fopen(path, "w");
    if (!f || fprintf(f, "%lld\n", (long long)count) < 0 || fclose(f) != 0)
        abort();
}

static void *recite_until_cancelled(void *arg)
{
    struct order *o = arg;
    const struct timespec tick = {.tv_nsec = 1000000};
    bool cancelled = false;
    int64_t i = 0;
    leave_mark(o, ".begun", 0);
    for (; !cancelled; i++) {
        if (o->quiet || o->slow)
            nanosleep(&tick, NULL); /* allowed: it takes its time */
        if (!o->quiet)
            send_one(o, i, false);
        must(TRITONBACKEND_ResponseFactoryIsCancelled(o->factory, &cancelled));
    }
    leave_mark(o, "", i);
    o->joined = false;
    end(o, true);
    free(o);
    return NULL;
}

static void recite_apart(const struct order *o)
{
    struct order *copy = malloc(sizeof(*copy));
    pthread_t thread;
    if (!copy)
        abort();
    *copy = *o;
    if (pthread_create(&thread, NULL, recite_until_cancelled, copy) != 0)
        abort();
    pthread_detach(thread);
}

static void refuse(struct order *o)
{
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *e = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "not recited");
    must(TRITONBACKEND_ResponseNewFromFactory(&response, o->factory));
    must(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, e));
    TRITONSERVER_ErrorDelete(e);
    must(TRITONBACKEND_ResponseFactoryDelete(o->factory));
    must(TRITONBACKEND_RequestRelease(o->request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void)instance;
    for (uint32_t i = 0; i < count; i++) {
        struct order o;
        read_order(&o, requests[i]);
        if (o.refuse)
            refuse(&o);
        else if (o.mark)
            recite_apart(&o);
        else
            recite(&o);
    }
    return NULL;
}
