#include "grpc/api/grpc_logging.h"

#include "base/mem.h"
#include "grpc/api/grpc_control.h"
#include "grpc/grpc_conn.h"
#include "proto/grpc_service.pb-c.h"
#include "server/control/log_change.h"
#include "server/server.h"
#include "server/worker.h"

#include <string.h>

typedef Inference__LogSettingsRequest__SettingValue request_value;
typedef Inference__LogSettingsResponse__SettingsEntry response_entry;
typedef Inference__LogSettingsResponse__SettingValue response_value;

#define CHOICE(name) INFERENCE__LOG_SETTINGS_REQUEST__SETTING_VALUE__PARAMETER_CHOICE_##name
#define TOLD(name)   INFERENCE__LOG_SETTINGS_RESPONSE__SETTING_VALUE__PARAMETER_CHOICE_##name
#define MOST_KEYS    7

/* The value of a key; if it occurs twice, the last one counts. NULL = not named. */
static const request_value *grpc_logging_value(const Inference__LogSettingsRequest *in,
                                               const char *key)
{
    static const request_value unset = INFERENCE__LOG_SETTINGS_REQUEST__SETTING_VALUE__INIT;
    for (size_t i = in->n_settings; i-- > 0;)
        if (strcmp(in->settings[i]->key, key) == 0)
            return in->settings[i]->value ? in->settings[i]->value : &unset;
    return NULL;
}

static struct err *grpc_logging_expected(const char *type, const char *key)
{
    return err_new(STATUS_INVALID_ARG, "expect %s for '%s'", type, key);
}

static struct err *grpc_logging_read_bool(const Inference__LogSettingsRequest *in, const char *key,
                                          struct log_change *c, unsigned bit, bool *ret)
{
    const request_value *v = grpc_logging_value(in, key);
    if (!v)
        return NULL;
    if (v->parameter_choice_case != CHOICE(BOOL_PARAM))
        return grpc_logging_expected("boolean", key);
    c->what |= bit;
    *ret = v->bool_param != 0;
    return NULL;
}

static struct err *grpc_logging_read_verbose(const Inference__LogSettingsRequest *in,
                                             struct log_change *c)
{
    const request_value *v = grpc_logging_value(in, "log_verbose_level");
    if (!v)
        return NULL;
    if (v->parameter_choice_case != CHOICE(UINT32_PARAM))
        return grpc_logging_expected("int32", "log_verbose_level");
    log_change_verbose(c, v->uint32_param);
    return NULL;
}

static struct err *read_texts(const Inference__LogSettingsRequest *in, struct log_change *c)
{
    const request_value *v = grpc_logging_value(in, "log_format");
    if (v && v->parameter_choice_case != CHOICE(STRING_PARAM))
        return grpc_logging_expected("string", "log_format");
    if (v && !log_change_format(c, v->string_param, strlen(v->string_param)))
        return err_new(STATUS_INVALID_ARG, "invalid argument for log_format, got: %s",
                       v->string_param);
    v = grpc_logging_value(in, "log_component");
    if (v && v->parameter_choice_case != CHOICE(STRING_PARAM))
        return grpc_logging_expected("string", "log_component");
    return v ? log_change_components(c, v->string_param, strlen(v->string_param)) : NULL;
}

/* Reads the settings in the reference's order, so that of several errors the same one is
 * reported. */
static struct err *grpc_logging_read_change(const Inference__LogSettingsRequest *in,
                                            struct log_change *c)
{
    if (grpc_logging_value(in, "log_file"))
        return log_change_no_file();
    struct err *e = grpc_logging_read_bool(in, "log_info", c, LOG_UPDATE_INFO, &c->to.info);
    if (!e)
        e = grpc_logging_read_bool(in, "log_warning", c, LOG_UPDATE_WARNING, &c->to.warning);
    if (!e)
        e = grpc_logging_read_bool(in, "log_error", c, LOG_UPDATE_ERROR, &c->to.error);
    if (!e)
        e = grpc_logging_read_verbose(in, c);
    return e ? e : read_texts(in, c);
}

/* An answer with its parts. */
struct told {
    Inference__LogSettingsResponse message;
    response_entry *list[MOST_KEYS];
    response_entry entries[MOST_KEYS];
    response_value values[MOST_KEYS];
};

/* Adds a setting; its texts are only read. */
static response_value *grpc_logging_add(struct told *t, const char *key)
{
    size_t i = t->message.n_settings++;
    t->values[i] = (response_value)INFERENCE__LOG_SETTINGS_RESPONSE__SETTING_VALUE__INIT;
    t->entries[i] = (response_entry)INFERENCE__LOG_SETTINGS_RESPONSE__SETTINGS_ENTRY__INIT;
    t->entries[i].key = (char *)(uintptr_t)key;
    t->entries[i].value = &t->values[i];
    t->list[i] = &t->entries[i];
    return &t->values[i];
}

static void add_bool(struct told *t, const char *key, bool yes)
{
    response_value *v = grpc_logging_add(t, key);
    v->parameter_choice_case = TOLD(BOOL_PARAM);
    v->bool_param = yes;
}

static void add_text(struct told *t, const char *key, const char *text)
{
    response_value *v = grpc_logging_add(t, key);
    v->parameter_choice_case = TOLD(STRING_PARAM);
    v->string_param = (char *)(uintptr_t)text;
}

static void grpc_logging_tell(struct grpc_stream *s)
{
    struct log_told now = log_change_told(s->conn->home->worker->server->options->log_file);
    struct told t = {.message = INFERENCE__LOG_SETTINGS_RESPONSE__INIT};
    t.message.settings = t.list;
    add_text(&t, "log_file", now.file);
    add_bool(&t, "log_info", now.settings.info);
    add_bool(&t, "log_warning", now.settings.warning);
    add_bool(&t, "log_error", now.settings.error);
    response_value *verbose = grpc_logging_add(&t, "log_verbose_level");
    verbose->parameter_choice_case = TOLD(UINT32_PARAM);
    verbose->uint32_param = now.settings.verbose;
    add_text(&t, "log_format", now.format);
    if (now.components)
        add_text(&t, "log_component", now.components);
    grpc_control_answer(s, NULL, &t.message.base);
    mem_free(now.components);
}

void grpc_logging_settings(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m =
        grpc_control_unpack(s, &inference__log_settings_request__descriptor, data, len);
    if (!m)
        return;
    struct log_change c = {0};
    struct err *e = grpc_logging_read_change((const Inference__LogSettingsRequest *)m, &c);
    protobuf_c_message_free_unpacked(m, NULL);
    if (e) {
        grpc_control_answer(s, e, NULL);
        return;
    }
    log_change_apply(&c);
    grpc_logging_tell(s);
}
