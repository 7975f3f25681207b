/* A backend that does with the states of sequences what a request tells it to, and answers what
 * came of it: the same file in this server and in the reference.
 *
 * The input SCRIPT is one string of steps, each ended by ';':
 *
 *   new NAME TYPE DIM,DIM...  StateNew          buffer BYTES  StateBuffer
 *   fill BYTE                 the whole buffer  text T        the buffer, as one string
 *   update                    StateUpdate       attributes    StateBufferAttributes
 *   add NUMBER                the state OUT (INT32, one element) becomes IN + NUMBER
 *   until NUMBER              have the request again while what `add` made is less
 *   former                    go on with the handle of the request before, which is released by
 *                             now
 *   fail                      answer with an error
 *   inputs                    tell all inputs but SCRIPT
 *
 * The output TEXT is one string, a line for each step. A request without a script only fills a
 * row of a batch: its state OUT, if the model has one, is overwritten. */
#include "triton/core/tritonbackend.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_ROOM = 65536 };

struct work {
    TRITONBACKEND_Request *request;
    TRITONBACKEND_State *state;
    TRITONSERVER_Error *failed;
    int32_t value; /* of the last `add` */
    bool again;
    bool gap; /* fills a row: it has a response, but no outputs */
    char *buffer;
    uint64_t size;
    size_t used;
    char text[TEXT_ROOM];
};

static TRITONBACKEND_State *former; /* of the request before; instances of this backend run alone */

__attribute__((format(printf, 2, 3))) static void say(struct work *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->used, TEXT_ROOM - w->used, format, args);
    va_end(args);
    w->used += n > 0 && (size_t)n < TEXT_ROOM - w->used ? (size_t)n : 0;
}

static bool tell(struct work *w, TRITONSERVER_Error *e)
{
    if (e)
        say(w, "%s: %s\n", TRITONSERVER_ErrorCodeString(e), TRITONSERVER_ErrorMessage(e));
    TRITONSERVER_ErrorDelete(e);
    return !e;
}

static void must(TRITONSERVER_Error *e)
{
    if (!e)
        return;
    fprintf(stderr, "states backend: %s\n", TRITONSERVER_ErrorMessage(e));
    abort();
}

/* -- steps -- */

static void step_new(struct work *w, const char *args)
{
    char name[64] = "";
    char type[32] = "";
    char dims[256] = "";
    int64_t shape[16];
    uint32_t rank = 0;
    sscanf(args, "%63s %31s %255s", name, type, dims);
    for (char *at = dims; *at && rank < 16; rank++) {
        shape[rank] = strtoll(at, &at, 10);
        at += *at == ',';
    }
    if (tell(w, TRITONBACKEND_StateNew(&w->state, w->request, name,
                                       TRITONSERVER_StringToDataType(type), shape, rank)))
        say(w, "new\n");
}

static bool get_buffer(struct work *w, uint64_t size)
{
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    void *buffer = NULL;
    w->buffer = NULL;
    if (!tell(w, TRITONBACKEND_StateBuffer(w->state, &buffer, size, &type, &id)))
        return false;
    w->buffer = buffer;
    w->size = size;
    return true;
}

static void step_add(struct work *w, const char *number)
{
    TRITONBACKEND_Input *in;
    const void *bytes = NULL;
    uint64_t size = 0;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    const int64_t *shape;
    uint32_t rank;
    int32_t value;
    if (!tell(w, TRITONBACKEND_RequestInput(w->request, "IN", &in)) ||
        !tell(w, TRITONBACKEND_InputProperties(in, NULL, NULL, &shape, &rank, NULL, NULL)) ||
        !tell(w, TRITONBACKEND_InputBuffer(in, 0, &bytes, &size, &type, &id)) ||
        !tell(w, TRITONBACKEND_StateNew(&w->state, w->request, "OUT", TRITONSERVER_TYPE_INT32,
                                        shape, rank)) ||
        !get_buffer(w, sizeof(value)))
        return;
    memcpy(&value, bytes, sizeof(value));
    value += (int32_t)strtol(number, NULL, 10);
    memcpy(w->buffer, &value, sizeof(value));
    w->value = value;
    if (tell(w, TRITONBACKEND_StateUpdate(w->state)))
        say(w, "%d\n", value);
}

static void step_attributes(struct work *w)
{
    TRITONSERVER_BufferAttributes *a = NULL;
    TRITONSERVER_MemoryType type;
    int64_t id;
    size_t size;
    if (!tell(w, TRITONBACKEND_StateBufferAttributes(w->state, &a)))
        return;
    must(TRITONSERVER_BufferAttributesByteSize(a, &size));
    must(TRITONSERVER_BufferAttributesMemoryType(a, &type));
    must(TRITONSERVER_BufferAttributesMemoryTypeId(a, &id));
    say(w, "%zu bytes of %s %d\n", size, TRITONSERVER_MemoryTypeString(type), (int)id);
}

static void tell_input(struct work *w, TRITONBACKEND_Input *in, const char *name)
{
    TRITONSERVER_DataType type;
    const int64_t *shape;
    uint32_t rank, pieces;
    uint64_t size;
    must(TRITONBACKEND_InputProperties(in, NULL, &type, &shape, &rank, &size, &pieces));
    say(w, "%s %s [", name, TRITONSERVER_DataTypeString(type));
    for (uint32_t i = 0; i < rank; i++)
        say(w, "%s%lld", i ? "," : "", (long long)shape[i]);
    say(w, "] %llu bytes", (unsigned long long)size);
    for (uint32_t i = 0; size && i < pieces; i++) {
        const void *bytes;
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        int64_t id = 0;
        must(TRITONBACKEND_InputBuffer(in, i, &bytes, &size, &memory, &id));
        for (uint64_t k = 0; k < size && k < 64; k++)
            say(w, "%s%02x", k % 4 ? "" : " ", ((const unsigned char *)bytes)[k]);
    }
    say(w, "\n");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void step_inputs(struct work *w)
{
    uint32_t count;
    const char *names[64];
    must(TRITONBACKEND_RequestInputCount(w->request, &count));
    for (uint32_t i = 0; i < count && i < 64; i++)
        must(TRITONBACKEND_RequestInputName(w->request, i, &names[i]));
    qsort(names, count, sizeof(*names), by_name);
    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_Input *in;
        must(TRITONBACKEND_RequestInput(w->request, names[i], &in));
        if (strcmp(names[i], "SCRIPT") != 0)
            tell_input(w, in, names[i]);
    }
}

static void step_write(struct work *w, bool text, const char *args)
{
    uint32_t length = (uint32_t)strlen(args);
    if (!w->buffer) {
        say(w, "no buffer\n");
    } else if (text && w->size == sizeof(length) + length) {
        memcpy(w->buffer, &length, sizeof(length));
        memcpy(w->buffer + sizeof(length), args, length);
    } else {
        memset(w->buffer, (int)strtol(args, NULL, 10), w->size);
    }
}

static void run_step(struct work *w, char *step)
{
    char *args = strchr(step, ' ');
    if (args)
        *args++ = '\0';
    else
        args = step + strlen(step);
    if (strcmp(step, "new") == 0)
        step_new(w, args);
    else if (strcmp(step, "buffer") == 0 && get_buffer(w, strtoull(args, NULL, 10)))
        say(w, "buffer\n");
    else if (strcmp(step, "fill") == 0 || strcmp(step, "text") == 0)
        step_write(w, *step == 't', args);
    else if (strcmp(step, "update") == 0 && tell(w, TRITONBACKEND_StateUpdate(w->state)))
        say(w, "update\n");
    else if (strcmp(step, "add") == 0)
        step_add(w, args);
    else if (strcmp(step, "attributes") == 0)
        step_attributes(w);
    else if (strcmp(step, "until") == 0)
        w->again = w->value < strtol(args, NULL, 10);
    else if (strcmp(step, "former") == 0)
        w->state = former;
    else if (strcmp(step, "fail") == 0)
        w->failed = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "told to fail");
    else if (strcmp(step, "inputs") == 0)
        step_inputs(w);
}

/* -- requests -- */

static void run_script(struct work *w, char *script)
{
    char *rest;
    for (char *step = strtok_r(script, ";", &rest); step; step = strtok_r(NULL, ";", &rest))
        run_step(w, step + strspn(step, " "));
    former = w->state;
}

/* A row that nobody asked for has no script. */
static char *read_script(struct work *w)
{
    TRITONBACKEND_Input *in;
    const void *bytes;
    uint64_t size;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    must(TRITONBACKEND_RequestInput(w->request, "SCRIPT", &in));
    must(TRITONBACKEND_InputBuffer(in, 0, &bytes, &size, &type, &id));
    w->gap = size <= 4;
    if (w->gap)
        return strdup("new OUT INT32 1,1; buffer 4; fill 99; update");
    return strndup((const char *)bytes + 4, size - 4);
}

static bool batches(TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Input *in;
    uint32_t rank;
    must(TRITONBACKEND_RequestInput(request, "SCRIPT", &in));
    must(TRITONBACKEND_InputProperties(in, NULL, NULL, NULL, &rank, NULL, NULL));
    return rank == 2;
}

static void answer(struct work *w)
{
    TRITONBACKEND_Response *response;
    TRITONBACKEND_Output *out;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    void *to;
    const int64_t shape[2] = {1, 1};
    uint32_t length = (uint32_t)w->used;
    must(TRITONBACKEND_ResponseNew(&response, w->request));
    if (!w->failed && !w->gap) {
        must(TRITONBACKEND_ResponseOutput(response, &out, "TEXT", TRITONSERVER_TYPE_BYTES, shape,
                                          batches(w->request) ? 2 : 1));
        must(TRITONBACKEND_OutputBuffer(out, &to, sizeof(length) + length, &type, &id));
        memcpy(to, &length, sizeof(length));
        memcpy((char *)to + sizeof(length), w->text, length);
    }
    must(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, w->failed));
    TRITONSERVER_ErrorDelete(w->failed);
    must(TRITONBACKEND_RequestRelease(w->request, TRITONSERVER_REQUEST_RELEASE_ALL));
}

TRITONBACKEND_ISPEC TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void)instance;
    struct work *w = malloc(sizeof(*w));
    for (uint32_t i = 0; i < count; i++) {
        memset(w, 0, sizeof(*w));
        w->request = requests[i];
        char *script = read_script(w);
        run_script(w, script);
        free(script);
        if (count > 1)
            say(w, "row %u of %u\n", i, count);
        if (w->again)
            must(TRITONBACKEND_RequestRelease(w->request, TRITONSERVER_REQUEST_RELEASE_RESCHEDULE));
        else
            answer(w);
    }
    free(w);
    return NULL;
}
