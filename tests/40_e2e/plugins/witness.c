/* witness: a backend that tells what goes on around its executions, and works in both servers,
 * and in processes of their own. All its instances write to one board, a file. An answer is
 *
 *   [ which execution this was, counted over all models, how many there were at that moment, the
 *   most that there ever were, the thread ]
 *
 * once for each row where there is a batch. Parameters of a model, as string_value:
 *   board  the file
 *   gate   wait in each execution until somebody has this pipe open to write
 *   door   the same while the model is loaded
 *   tell   fail instead of making an instance, with its host policy, name, kind and device in
 *          the message
 *   stay   the same behind an answer that is alone, or not the last of an execution
 *   exit   the same while an instance is finalised, which is counted on the board before and
 *          after */
#include "triton/core/tritonbackend.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PATIENCE = 500, /* how many turns an execution gives another one to begin */
    NUMBERS = 4
};

struct board {
    atomic_int executions;
    atomic_int now;
    atomic_int most;
    atomic_int finalised;
    atomic_int leaving;
};

struct model {
    struct board *board;
    char gate[256];
    char stay[256];
    char exit[256];
    int tell;
};

static int find(const char *json, const char *key, char *ret, size_t size)
{
    char pattern[64];
    snprintf(pattern, sizeof(pattern), "\"%s\":{\"string_value\":\"%%%zu[^\"]\"", key, size - 1);
    for (const char *at = json; (at = strchr(at, '"')) != NULL; at++)
        if (sscanf(at, pattern, ret) == 1)
            return 1;
    return 0;
}

static struct board *open_board(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct board)) != 0)
        abort();
    struct board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (b == MAP_FAILED)
        abort();
    return b;
}

static void pass(const char *gate)
{
    int fd = open(gate, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        abort();
    close(fd);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle)
{
    TRITONSERVER_Message *message;
    const char *json;
    size_t len;
    char path[256];
    TRITONSERVER_Error *e = TRITONBACKEND_ModelConfig(handle, 1, &message);
    if (!e)
        e = TRITONSERVER_MessageSerializeToJson(message, &json, &len);
    if (e)
        return e;
    struct model *m = calloc(1, sizeof(*m));
    char *text = strndup(json, len);
    if (find(text, "board", path, sizeof(path)))
        m->board = open_board(path);
    find(text, "gate", m->gate, sizeof(m->gate));
    find(text, "stay", m->stay, sizeof(m->stay));
    find(text, "exit", m->exit, sizeof(m->exit));
    m->tell = find(text, "tell", path, sizeof(path));
    if (find(text, "door", path, sizeof(path)))
        pass(path);
    free(text);
    e = TRITONSERVER_MessageDelete(message);
    return e ? e : TRITONBACKEND_ModelSetState(handle, m);
}

static struct model *state_of(TRITONBACKEND_Model *handle)
{
    void *m = NULL;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelState(handle, &m));
    return m;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle)
{
    struct model *m = state_of(handle);
    if (m && m->board)
        munmap(m->board, sizeof(*m->board));
    free(m);
    return NULL;
}

static struct model *model_of(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model = NULL;
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceModel(instance, &model));
    return state_of(model);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONSERVER_Message *message;
    const char *json, *name;
    size_t len;
    char text[1024];
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device;
    if (!model_of(instance)->tell)
        return NULL;
    TRITONSERVER_Error *e = TRITONBACKEND_ModelInstanceHostPolicy(instance, &message);
    if (!e)
        e = TRITONSERVER_MessageSerializeToJson(message, &json, &len);
    if (!e)
        e = TRITONBACKEND_ModelInstanceName(instance, &name);
    if (!e)
        e = TRITONBACKEND_ModelInstanceKind(instance, &kind);
    if (!e)
        e = TRITONBACKEND_ModelInstanceDeviceId(instance, &device);
    if (e)
        return e;
    snprintf(text, sizeof(text), "policy %.*s; instance %s is %s on device %d", (int)len, json,
             name, TRITONSERVER_InstanceGroupKindString(kind), device);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, text);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    struct model *m = model_of(instance);
    if (!*m->exit)
        return NULL;
    atomic_fetch_add(&m->board->leaving, 1);
    pass(m->exit);
    atomic_fetch_add(&m->board->finalised, 1);
    return NULL;
}

/* Gives another execution the time to come. On a busy machine each turn may take long. */
static void meet_another(const struct board *b)
{
    for (int i = 0; i < PATIENCE && atomic_load(&b->most) < 2; i++)
        sched_yield();
}

static void witness(struct model *m, int32_t numbers[NUMBERS])
{
    struct board *b = m->board;
    int now = atomic_fetch_add(&b->now, 1) + 1;
    int most = atomic_load(&b->most);
    while (now > most && !atomic_compare_exchange_weak(&b->most, &most, now))
        continue;
    numbers[0] = atomic_fetch_add(&b->executions, 1);
    if (*m->gate)
        pass(m->gate);
    else
        meet_another(b);
    numbers[1] = now;
    numbers[2] = atomic_load(&b->most);
    numbers[3] = (int32_t)gettid();
    atomic_fetch_sub(&b->now, 1);
}

/* How many rows the request has; batched tells whether it has such a dimension. */
static TRITONSERVER_Error *rows_of(TRITONBACKEND_Request *request, int *ret_batched,
                                   int64_t *ret_rows)
{
    TRITONBACKEND_Input *input;
    const int64_t *shape;
    uint32_t rank;
    TRITONSERVER_Error *e = TRITONBACKEND_RequestInput(request, "INPUT0", &input);
    if (!e)
        e = TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &rank, NULL, NULL);
    if (e)
        return e;
    *ret_batched = rank > 1;
    *ret_rows = rank > 1 ? shape[0] : 1;
    return NULL;
}

static TRITONSERVER_Error *answer(TRITONBACKEND_Request *request, const int32_t *numbers,
                                  TRITONBACKEND_Response **ret)
{
    TRITONBACKEND_Output *output;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    int64_t rows = 1;
    int batched = 0;
    void *buffer;
    *ret = NULL;
    TRITONSERVER_Error *e = TRITONBACKEND_ResponseNew(ret, request);
    if (!e)
        e = rows_of(request, &batched, &rows);
    const int64_t shape[] = {rows, NUMBERS};
    if (!e)
        e = TRITONBACKEND_ResponseOutput(*ret, &output, "OUTPUT0", TRITONSERVER_TYPE_INT32,
                                         shape + !batched, 1 + (uint32_t)batched);
    if (!e)
        e = TRITONBACKEND_OutputBuffer(output, &buffer, (uint64_t)rows * NUMBERS * sizeof(*numbers),
                                       &memory, &id);
    for (int64_t row = 0; !e && row < rows; row++)
        memcpy((int32_t *)buffer + row * NUMBERS, numbers, NUMBERS * sizeof(*numbers));
    return e;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests,
                                                       const uint32_t count)
{
    int32_t numbers[NUMBERS];
    witness(model_of(instance), numbers);
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, count, 0, 0, 0, 0));
    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_Response *response;
        TRITONSERVER_Error *e = answer(requests[i], numbers, &response);
        /* Before the answer, so that who has it also finds it counted. */
        TRITONSERVER_ErrorDelete(TRITONBACKEND_ModelInstanceReportStatistics(
            instance, requests[i], e == NULL, 0, 0, 0, 0));
        if (response)
            TRITONSERVER_ErrorDelete(
                TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, e));
        TRITONSERVER_ErrorDelete(e);
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_RequestRelease(requests[i], TRITONSERVER_REQUEST_RELEASE_ALL));
        if (*model_of(instance)->stay && (i + 1 < count || count == 1))
            pass(model_of(instance)->stay);
    }
    return NULL;
}
