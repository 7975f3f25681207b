#include "asked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "common/berr.h"
#include "metrics.h"
#include "nested.h"

/* A load is the longest call: a model, its configuration, and as many files as a load over the
 * network has parameters, each with its path. */
enum { VALUES_MAX = 2 + 2 * 10000 };

/* Reads a call's values; NULL = it is none. Owned by the caller. */
static struct asked_value *asked_values(struct wire_in *in, size_t *ret_count)
{
    uint32_t count = wire_count(in);
    struct asked_value *values = count <= VALUES_MAX ? calloc(count + 1, sizeof *values) : NULL;
    for (uint32_t i = 0; values && i < count; i++) {
        struct asked_value *each = &values[i];
        each->kind = wire_u32(in);
        each->text = "";
        if (each->kind == CALL_INT)
            each->number = (int64_t)wire_u64(in);
        else if (each->kind == CALL_DOUBLE)
            each->real = wire_double(in);
        else
            each->text = wire_text(in, &each->length);
    }
    if (in->bad) {
        free(values);
        return NULL;
    }
    *ret_count = count;
    return values;
}

static void asked_reply(struct stub *stub, uint64_t id, TRITONSERVER_Error *err, int64_t number)
{
    struct wire_out out = {0};
    wire_put_u32(&out, err ? CALL_ERROR : CALL_INT);
    if (err) {
        const char *text = TRITONSERVER_ErrorMessage(err);
        wire_put_text(&out, text, strlen(text));
    } else {
        wire_put_u64(&out, (uint64_t)number);
    }
    if (!out.failed)
        stub_send(stub, LINK_REPLY, id, out.at, out.used);
    wire_fini(&out);
    berr_drop(err);
}

static void asked_reply_real(struct stub *stub, uint64_t id, double real)
{
    struct wire_out out = {0};
    wire_put_u32(&out, CALL_DOUBLE);
    wire_put_double(&out, real);
    if (!out.failed)
        stub_send(stub, LINK_REPLY, id, out.at, out.used);
    wire_fini(&out);
}

static void asked_log(const struct asked_value *values, size_t count)
{
    static const TRITONSERVER_LogLevel levels[] = {TRITONSERVER_LOG_INFO, TRITONSERVER_LOG_WARN,
                                                   TRITONSERVER_LOG_ERROR,
                                                   TRITONSERVER_LOG_VERBOSE};
    if (count == 4 && values[0].number >= 0 && values[0].number < 4)
        berr_drop(TRITONSERVER_LogMessage(levels[values[0].number], values[1].text,
                                          (int)values[2].number, values[3].text));
}

/* -- loading and unloading, which take their time -- */

struct control {
    struct host *host;
    struct stub *stub;
    uint64_t id;
    uint32_t op;
    char *record; /* the values lie in it */
    struct asked_value *values;
    size_t count;
};

static TRITONSERVER_Error *control_load(struct control *control)
{
    const struct asked_value *values = control->values;
    size_t count = 0, most = control->count / 2 + 1;
    const TRITONSERVER_Parameter **parameters = calloc(most, sizeof *parameters);
    if (!parameters || control->count < 2) {
        free(parameters);
        return berr_no_memory();
    }
    if (values[1].length)
        parameters[count++] =
            TRITONSERVER_ParameterNew("config", TRITONSERVER_PARAMETER_STRING, values[1].text);
    for (size_t i = 2; i + 1 < control->count; i += 2)
        parameters[count++] = TRITONSERVER_ParameterBytesNew(values[i].text, values[i + 1].text,
                                                             values[i + 1].length);
    TRITONSERVER_Error *err = TRITONSERVER_ServerLoadModelWithParameters(
        control->host->model->server, values[0].text, parameters, count);
    for (size_t i = 0; i < count; i++)
        TRITONSERVER_ParameterDelete((TRITONSERVER_Parameter *)(uintptr_t)parameters[i]);
    free(parameters);
    return err;
}

static void *control_run(void *of)
{
    struct control *control = of;
    struct host *host = control->host;
    TRITONSERVER_Server *server = host->model->server;
    TRITONSERVER_Error *err;
    if (control->op == CALL_LOAD)
        err = control_load(control);
    else if (control->count == 2 && control->values[1].number)
        err = TRITONSERVER_ServerUnloadModelAndDependents(server, control->values[0].text);
    else
        err = TRITONSERVER_ServerUnloadModel(server, control->count ? control->values[0].text : "");
    asked_reply(control->stub, control->id, err, 0);
    stub_unref(control->stub);
    free(control->values);
    free(control->record);
    free(control);
    host_end(host);
    return NULL;
}

/* Takes the values over. */
static void control_start(struct host *host, struct heard *heard, uint32_t op,
                          struct asked_value *values, size_t count)
{
    struct control *control = malloc(sizeof *control);
    pthread_t thread;
    if (!control) {
        asked_reply(host->stub, heard->id, berr_no_memory(), 0);
        free(values);
        return;
    }
    *control = (struct control){.host = host,
                                .stub = stub_ref(host->stub),
                                .id = heard->id,
                                .op = op,
                                .record = heard->data,
                                .values = values,
                                .count = count};
    heard->data = NULL;
    host_begin(host);
    if (pthread_create(&thread, NULL, control_run, control) == 0)
        pthread_detach(thread);
    else
        control_run(control);
}

static TRITONSERVER_Error *asked_version(const char *text, int64_t *ret_version)
{
    *ret_version = -1;
    if (!*text)
        return NULL;
    char *end;
    errno = 0;
    long long version = strtoll(text, &end, 10);
    if (end == text || errno)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "failed to get model version from specified version string '%s' (details: "
                        "stol), version should be an integral value > 0",
                        text);
    if (version < 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "failed to get model version from specified version string '%s', version "
                        "should be an integral value > 0",
                        text);
    *ret_version = version;
    return NULL;
}

static TRITONSERVER_Error *asked_ready(struct host *host, const struct asked_value *values,
                                       size_t count, int64_t *ret_number)
{
    int64_t version;
    bool ready = false;
    if (count != 2)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "a model and a version");
    TRITONSERVER_Error *err = asked_version(values[1].text, &version);
    if (!err)
        err = TRITONSERVER_ServerModelIsReady(host->model->server, values[0].text, version, &ready);
    *ret_number = ready;
    return err;
}

static TRITONSERVER_Error *asked_cancelled(struct host *host, const struct asked_value *values,
                                           size_t count, int64_t *ret_number)
{
    struct handle *handle = count == 1 ? handle_find(host, (uint64_t)values[0].number) : NULL;
    bool cancelled = false;
    TRITONSERVER_Error *err = handle ? handle_is_cancelled(handle, &cancelled) : NULL;
    *ret_number = cancelled;
    return err;
}

static TRITONSERVER_Error *asked_room(struct host *host, const struct asked_value *values,
                                      size_t count, int64_t *ret_number)
{
    uint64_t at = count == 1 && values[0].number >= 0
                      ? arena_take(&host->stub->arena, (uint64_t)values[0].number)
                      : 0;
    *ret_number = (int64_t)at;
    return at ? NULL
              : berr_new(TRITONSERVER_ERROR_UNAVAILABLE, "no shared memory for %lld bytes",
                         count == 1 ? (long long)values[0].number : 0);
}

static void asked_answer(struct host *host, uint64_t id, uint32_t op,
                         const struct asked_value *values, size_t count)
{
    TRITONSERVER_Error *err = NULL;
    int64_t number = 0;
    double real = 0;
    switch (op) {
    case CALL_READY:
        err = asked_ready(host, values, count, &number);
        break;
    case CALL_CANCELLED:
        err = asked_cancelled(host, values, count, &number);
        break;
    case CALL_ROOM:
        err = asked_room(host, values, count, &number);
        break;
    case CALL_FAMILY_NEW:
    case CALL_METRIC_NEW:
    case CALL_METRIC_INCREMENT:
    case CALL_METRIC_SET:
    case CALL_METRIC_OBSERVE:
    case CALL_METRIC_VALUE:
        err = metrics_do(host, op, values, count, &number, &real);
        break;
    default:
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "there is no call %u", op);
    }
    if (!err && op == CALL_METRIC_VALUE)
        asked_reply_real(host->stub, id, real);
    else
        asked_reply(host->stub, id, err, number);
}

void asked_heard(struct host *host, struct heard *heard)
{
    struct wire_in in = {.at = heard->data, .bytes = heard->bytes};
    uint32_t op = wire_u32(&in);
    size_t count = 0;
    struct asked_value *values = asked_values(&in, &count);
    if (!values) {
        asked_reply(host->stub, heard->id,
                    berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                             "the call cannot be read, or has more than %d values", VALUES_MAX),
                    0);
        return;
    }
    int64_t number;
    double real;
    switch (op) {
    case CALL_LOAD:
    case CALL_UNLOAD:
        control_start(host, heard, op, values, count);
        return;
    case CALL_LOG:
        asked_log(values, count);
        break;
    case CALL_FAMILY_DELETE:
    case CALL_METRIC_DELETE:
        berr_drop(metrics_do(host, op, values, count, &number, &real));
        break;
    case CALL_CANCEL:
        nested_cancel(host, count == 1 ? (uint64_t)values[0].number : 0);
        break;
    default:
        asked_answer(host, heard->id, op, values, count);
    }
    free(values);
}
