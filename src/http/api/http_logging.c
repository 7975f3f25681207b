#include "http/api/http_logging.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/json_out.h"
#include "http/api/http_json.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "server/control/log_change.h"
#include "server/server.h"
#include "server/worker.h"

#include <string.h>

/* A member that exists and is not null. */
static yyjson_val *given(yyjson_val *root, const char *name)
{
    yyjson_val *v = yyjson_obj_get(root, name);
    return yyjson_is_null(v) ? NULL : v;
}

static struct err *http_logging_read_bool(yyjson_val *root, const char *name, struct log_change *c,
                                          unsigned bit, bool *ret)
{
    yyjson_val *v = given(root, name);
    if (!v)
        return NULL;
    if (!yyjson_is_bool(v))
        return err_new(STATUS_INTERNAL, "attempt to access JSON non-boolean as boolean");
    c->what |= bit;
    *ret = yyjson_is_true(v);
    return NULL;
}

static struct err *no_string(void)
{
    return err_new(STATUS_INTERNAL, "attempt to access JSON non-string as string");
}

static struct err *http_logging_read_verbose(yyjson_val *root, struct log_change *c)
{
    yyjson_val *v = given(root, "log_verbose_level");
    if (v && !yyjson_is_uint(v))
        return err_new(STATUS_INTERNAL,
                       "attempt to access JSON non-unsigned-integer as unsigned-integer");
    if (v)
        log_change_verbose(c, yyjson_get_uint(v));
    return NULL;
}

static struct err *read_format(yyjson_val *root, struct log_change *c)
{
    yyjson_val *v = given(root, "log_format");
    if (!v)
        return NULL;
    if (!yyjson_is_str(v))
        return no_string();
    if (!log_change_format(c, yyjson_get_str(v), yyjson_get_len(v)))
        return err_new(STATUS_UNAVAILABLE, "invalid argument for --log_format, got: %s",
                       yyjson_get_str(v));
    return NULL;
}

static struct err *read_components(yyjson_val *root, struct log_change *c)
{
    yyjson_val *v = given(root, "log_component");
    if (!v)
        return NULL;
    return yyjson_is_str(v) ? log_change_components(c, yyjson_get_str(v), yyjson_get_len(v))
                            : no_string();
}

/* Reads the settings in the reference's order, so that of several errors the same one is
 * reported. A body that is not an object changes nothing. */
static struct err *http_logging_read_change(yyjson_val *root, struct log_change *c)
{
    if (given(root, "log_file"))
        return log_change_no_file();
    struct err *e = http_logging_read_bool(root, "log_info", c, LOG_UPDATE_INFO, &c->to.info);
    if (!e)
        e = http_logging_read_bool(root, "log_warning", c, LOG_UPDATE_WARNING, &c->to.warning);
    if (!e)
        e = http_logging_read_bool(root, "log_error", c, LOG_UPDATE_ERROR, &c->to.error);
    if (!e)
        e = http_logging_read_verbose(root, c);
    if (!e)
        e = read_format(root, c);
    return e ? e : read_components(root, c);
}

static struct err *change(struct http_exchange *x, struct http_message *m)
{
    struct http_json json;
    struct err *e = http_json_parse_body(x->shard, m, &json);
    if (e)
        return e;
    struct log_change c = {0};
    e = http_logging_read_change(yyjson_doc_get_root(json.doc), &c);
    http_json_end(&json);
    if (!e)
        log_change_apply(&c);
    return e;
}

static void http_logging_put_text(struct strbuf *sb, const char *key, const char *value)
{
    strbuf_puts(sb, key);
    json_out_put(sb, value);
}

static const char *http_logging_word(bool yes)
{
    return yes ? "true" : "false";
}

struct err *http_logging_serve(struct http_exchange *x, struct http_message *m)
{
    struct err *e = m->head->method == HTTP1_POST ? change(x, m) : NULL;
    if (e)
        return e;
    struct log_told told = log_change_told(x->shard->worker->server->options->log_file);
    struct strbuf sb = STRBUF_INIT;
    http_logging_put_text(&sb, "{\"log_file\":", told.file);
    strbuf_printf(&sb, ",\"log_info\":%s,\"log_warning\":%s,\"log_error\":%s,",
                  http_logging_word(told.settings.info), http_logging_word(told.settings.warning),
                  http_logging_word(told.settings.error));
    strbuf_printf(&sb, "\"log_verbose_level\":%u", told.settings.verbose);
    http_logging_put_text(&sb, ",\"log_format\":", told.format);
    if (told.components)
        http_logging_put_text(&sb, ",\"log_component\":", told.components);
    strbuf_putc(&sb, '}');
    mem_free(told.components);
    size_t len = sb.len;
    http_exchange_text(x, 200, HTTP_JSON, strbuf_take(&sb), len);
    return NULL;
}
