#include "http/api/http_trace_read.h"

#include "tracing/tracing_settings.h"

static struct err *http_trace_no_string(void)
{
    return err_new(STATUS_INTERNAL, "attempt to access JSON non-string as string");
}

static struct err *http_trace_read_level(yyjson_val *v, struct tracing_change *c)
{
    if (!v)
        return NULL;
    if (yyjson_is_null(v)) {
        c->clear |= TRACING_LEVEL;
        return NULL;
    }
    if (!yyjson_is_arr(v))
        return err_new(STATUS_INTERNAL, "attempt to access JSON non-array as array");
    size_t i, count;
    yyjson_val *word;
    struct err *e = NULL;
    yyjson_arr_foreach(v, i, count, word)
    {
        if (!e)
            e = yyjson_is_str(word) ? tracing_settings_level(c, yyjson_get_str(word), count)
                                    : http_trace_no_string();
    }
    return e;
}

static struct err *http_trace_read_number(yyjson_val *v, unsigned which, struct tracing_change *c)
{
    if (!v)
        return NULL;
    if (yyjson_is_null(v)) {
        c->clear |= which;
        return NULL;
    }
    return yyjson_is_str(v) ? tracing_settings_number(c, which, yyjson_get_str(v), false)
                            : http_trace_no_string();
}

struct err *http_trace_read(yyjson_val *root, struct tracing_change *ret)
{
    *ret = (struct tracing_change){0};
    if (yyjson_obj_get(root, "trace_file"))
        return tracing_settings_no_file();
    struct err *e = http_trace_read_level(yyjson_obj_get(root, "trace_level"), ret);
    if (!e)
        e = http_trace_read_number(yyjson_obj_get(root, "trace_rate"), TRACING_RATE, ret);
    if (!e)
        e = http_trace_read_number(yyjson_obj_get(root, "trace_count"), TRACING_COUNT, ret);
    if (!e)
        e = http_trace_read_number(yyjson_obj_get(root, "log_frequency"), TRACING_FREQUENCY, ret);
    return e;
}
