#include "grpc/api/grpc_trace.h"

#include "grpc/api/grpc_control.h"
#include "grpc/grpc_conn.h"
#include "server/control/describe.h"
#include "server/worker.h"
#include "tracing/tracing.h"
#include "triton/core/tritonserver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef Inference__TraceSettingRequest__SettingValue wanted_value;
typedef Inference__TraceSettingResponse__SettingsEntry told_entry;
typedef Inference__TraceSettingResponse__SettingValue told_value;

#define TOLD_KEYS   (6 + TRACING_MOST_TOLD)
#define TOLD_LEVELS 2

/* Of a key that comes twice the last value counts, as in any map. NULL = it is not named. */
static const wanted_value *grpc_trace_value(const Inference__TraceSettingRequest *in,
                                            const char *key)
{
    static const wanted_value unset = INFERENCE__TRACE_SETTING_REQUEST__SETTING_VALUE__INIT;
    for (size_t i = in->n_settings; i-- > 0;)
        if (strcmp(in->settings[i]->key, key) == 0)
            return in->settings[i]->value ? in->settings[i]->value : &unset;
    return NULL;
}

static struct err *grpc_trace_read_level(const Inference__TraceSettingRequest *in,
                                         struct tracing_change *c)
{
    const wanted_value *v = grpc_trace_value(in, "trace_level");
    if (v && !v->n_value)
        c->clear |= TRACING_LEVEL;
    struct err *e = NULL;
    for (size_t i = 0; v && !e && i < v->n_value; i++)
        e = tracing_settings_level(c, v->value[i], v->n_value);
    return e;
}

static struct err *grpc_trace_read_number(const Inference__TraceSettingRequest *in, const char *key,
                                          unsigned which, struct tracing_change *c)
{
    const wanted_value *v = grpc_trace_value(in, key);
    if (v && !v->n_value)
        c->clear |= which;
    if (!v || !v->n_value)
        return NULL;
    return v->n_value == 1 ? tracing_settings_number(c, which, v->value[0], true)
                           : err_new(STATUS_INVALID_ARG, "expect only 1 value for '%s'", key);
}

struct err *grpc_trace_read(const Inference__TraceSettingRequest *in, struct tracing_change *ret)
{
    *ret = (struct tracing_change){0};
    if (grpc_trace_value(in, "trace_file"))
        return tracing_settings_no_file();
    struct err *e = grpc_trace_read_level(in, ret);
    if (!e)
        e = grpc_trace_read_number(in, "trace_rate", TRACING_RATE, ret);
    if (!e)
        e = grpc_trace_read_number(in, "trace_count", TRACING_COUNT, ret);
    return e ? e : grpc_trace_read_number(in, "log_frequency", TRACING_FREQUENCY, ret);
}

/* An answer, with what it is made of. */
struct trace_told {
    Inference__TraceSettingResponse message;
    told_entry *list[TOLD_KEYS];
    told_entry entries[TOLD_KEYS];
    told_value values[TOLD_KEYS];
    char *texts[TOLD_KEYS + TOLD_LEVELS];
    size_t text_count;
    char numbers[3][16];
};

/* A key that was told already gets one value more. The texts are only read. */
static void grpc_trace_add(struct trace_told *t, const char *key, const char *text)
{
    size_t i = 0;
    while (i < t->message.n_settings && strcmp(t->entries[i].key, key) != 0)
        i++;
    if (i == t->message.n_settings) {
        t->message.n_settings++;
        t->values[i] = (told_value)INFERENCE__TRACE_SETTING_RESPONSE__SETTING_VALUE__INIT;
        t->entries[i] = (told_entry)INFERENCE__TRACE_SETTING_RESPONSE__SETTINGS_ENTRY__INIT;
        t->entries[i].key = (char *)(uintptr_t)key;
        t->entries[i].value = &t->values[i];
        t->list[i] = &t->entries[i];
    }
    told_value *v = &t->values[i];
    if (!v->n_value)
        v->value = &t->texts[t->text_count];
    v->value[v->n_value++] = (char *)(uintptr_t)text;
    t->text_count++;
}

/* All values of one key lie together. */
static void grpc_trace_add_more(struct trace_told *t, const struct tracing_told *now)
{
    for (size_t i = 0; i < now->more_count; i++) {
        if (!tracing_told_first(now, i))
            continue;
        for (size_t k = i; k < now->more_count; k = tracing_told_next(now, k))
            grpc_trace_add(t, now->more[k].key, now->more[k].value);
    }
}

static void grpc_trace_tell(struct grpc_stream *s, const char *model)
{
    struct tracing_told now;
    struct trace_told t = {.message = INFERENCE__TRACE_SETTING_RESPONSE__INIT};
    tracing_tell(s->conn->home->worker->tracing, model, &now);
    t.message.settings = t.list;
    if (now.values.level & TRITONSERVER_TRACE_LEVEL_TIMESTAMPS)
        grpc_trace_add(&t, "trace_level", "TIMESTAMPS");
    if (now.values.level & TRITONSERVER_TRACE_LEVEL_TENSORS)
        grpc_trace_add(&t, "trace_level", "TENSORS");
    if (!now.values.level)
        grpc_trace_add(&t, "trace_level", "OFF");
    snprintf(t.numbers[0], sizeof(t.numbers[0]), "%" PRIu32, now.values.rate);
    snprintf(t.numbers[1], sizeof(t.numbers[1]), "%" PRId32, now.values.count);
    snprintf(t.numbers[2], sizeof(t.numbers[2]), "%" PRIu32, now.values.frequency);
    grpc_trace_add(&t, "trace_rate", t.numbers[0]);
    grpc_trace_add(&t, "trace_count", t.numbers[1]);
    if (now.file) {
        grpc_trace_add(&t, "log_frequency", t.numbers[2]);
        grpc_trace_add(&t, "trace_file", now.file);
    }
    grpc_trace_add(&t, "trace_mode", now.mode);
    grpc_trace_add_more(&t, &now);
    grpc_control_answer(s, NULL, &t.message.base);
}

static struct err *check_model(struct grpc_stream *s, const char *model)
{
    bool ready = false;
    if (*model)
        err_free(
            describe_model_ready(&s->conn->home->worker->view, model, strlen(model), -1, &ready));
    return *model && !ready ? err_new(STATUS_INVALID_ARG, "Request for unknown model : %s", model)
                            : NULL;
}

void grpc_trace_setting(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m =
        grpc_control_unpack(s, &inference__trace_setting_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__TraceSettingRequest *in = (const Inference__TraceSettingRequest *)m;
    struct tracing_change c;
    struct err *e = check_model(s, in->model_name);
    if (!e && in->n_settings)
        e = grpc_trace_read(in, &c);
    if (!e && in->n_settings)
        e = tracing_change(s->conn->home->worker->tracing, in->model_name, &c);
    if (e)
        grpc_control_answer(s, e, NULL);
    else
        grpc_trace_tell(s, in->model_name);
    protobuf_c_message_free_unpacked(m, NULL);
}
