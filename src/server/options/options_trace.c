#include "server/options/options_trace.h"

#include "server/options/options_row.h"
#include "triton/core/tritonserver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Bits of options_trace.configured. */
enum {
    TRACE_FILE = 1,
    TRACE_RATE = 2,
    TRACE_COUNT = 4,
    TRACE_FREQUENCY = 8,
};

static struct err *options_trace_number(const struct options_row *row, const char *value, long min,
                                        long max, long *ret)
{
    char *end;
    errno = 0;
    long n = strtol(value, &end, 10);
    bool digits = (*value >= '0' && *value <= '9') || *value == '-';
    if (!digits || end == value || *end || errno || n < min || n > max)
        return err_new(STATUS_INVALID_ARG,
                       "option --%s: expected a number from %ld to %ld, found '%s'", row->name, min,
                       max, value);
    *ret = n;
    return NULL;
}

static struct err *options_trace_level(const struct options_row *row, const char *value,
                                       struct options_trace *t)
{
    static const char *const on[] = {"timestamps", "true", "on", "min", "max"};
    if (t->levels_of_file) {
        t->levels_of_file = t->off = false;
        t->level = 0;
    }
    if (strcasecmp(value, "off") == 0 || strcasecmp(value, "false") == 0) {
        t->off = true;
        return NULL;
    }
    if (strcasecmp(value, "tensors") == 0) {
        t->level |= TRITONSERVER_TRACE_LEVEL_TENSORS;
        return NULL;
    }
    for (size_t i = 0; i < sizeof(on) / sizeof(*on); i++)
        if (strcasecmp(value, on[i]) == 0) {
            t->level |= TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
            return NULL;
        }
    return options_value_bad(row, value, "a level: OFF, TIMESTAMPS or TENSORS");
}

static struct err *options_trace_mode(const struct options_row *row, const char *value, size_t len,
                                      bool *ret_opentelemetry)
{
    bool triton = len == 6 && strncasecmp(value, "triton", len) == 0;
    *ret_opentelemetry = len == 13 && strncasecmp(value, "opentelemetry", len) == 0;
    return triton || *ret_opentelemetry
               ? NULL
               : options_value_bad(row, value, "a mode: triton or opentelemetry");
}

/* A value that two options give: what --trace-config says stays. */
static bool options_trace_wins(const struct options_row *row, struct options *o, unsigned bit)
{
    bool config = row->kind == OPTIONS_KIND_TRACE_CONFIG;
    if (!config && o->trace.configured & bit) {
        options_value_warn(o, "option --%s: does nothing beside --trace-config", row->name);
        return false;
    }
    o->trace.configured |= config ? bit : 0;
    return true;
}

static struct err *options_trace_file(const struct options_row *row, const char *value,
                                      struct options *o)
{
    if (!*value)
        return options_value_bad(row, value, "a path");
    if (options_trace_wins(row, o, TRACE_FILE))
        o->trace.file = value;
    return NULL;
}

/* Of TRACE_RATE, TRACE_COUNT, TRACE_FREQUENCY. */
static struct err *options_trace_amount(const struct options_row *row, const char *value,
                                        struct options *o, unsigned which)
{
    struct options_trace *t = &o->trace;
    long n = 0;
    struct err *e = options_trace_number(row, value, which == TRACE_COUNT ? -1 : 0, INT32_MAX, &n);
    if (e || !options_trace_wins(row, o, which))
        return e;
    if (which == TRACE_RATE)
        t->rate = (uint32_t)n;
    else if (which == TRACE_COUNT)
        t->count = (int32_t)n;
    else
        t->frequency = (uint32_t)n;
    return NULL;
}

/* What only holds for the mode opentelemetry; what it says is looked at here, whatever the mode. */
static struct err *options_trace_telemetry(const struct options_row *row, const char *key,
                                           const char *value, struct options *o)
{
    struct options_trace *t = &o->trace;
    long n;
    struct err *e = NULL;
    if (strcmp(key, "resource") == 0 && (!strchr(value, '=') || *value == '='))
        return options_value_bad(row, value, "resource=<key>=<value>");
    if (strncmp(key, "bsp_", 4) == 0)
        e = options_trace_number(row, value, 0, INT32_MAX, &n);
    else if (strcmp(key, "url") == 0 && strncmp(value, "http://", 7) != 0 &&
             strncmp(value, "https://", 8) != 0)
        e = options_value_bad(row, value, "url=http://... or https://...");
    if (e)
        return e;
    if (t->setting_count == OPTIONS_MAX_TRACE_SETTINGS)
        return err_new(STATUS_INVALID_ARG,
                       "option --%s: at most %d settings of opentelemetry can be given", row->name,
                       OPTIONS_MAX_TRACE_SETTINGS);
    t->settings[t->setting_count++] = (struct options_trace_setting){key, value};
    return NULL;
}

static struct err *options_trace_setting(const struct options_row *row, const char *mode,
                                         const char *key, const char *value, struct options *o)
{
    static const char *const telemetry[] = {"url", "resource", "bsp_max_queue_size",
                                            "bsp_schedule_delay", "bsp_max_export_batch_size"};
    if (!*mode) {
        if (strcmp(key, "level") == 0)
            return options_trace_level(row, value, &o->trace);
        if (strcmp(key, "rate") == 0)
            return options_trace_amount(row, value, o, TRACE_RATE);
        if (strcmp(key, "count") == 0)
            return options_trace_amount(row, value, o, TRACE_COUNT);
        if (strcmp(key, "mode") == 0)
            return options_trace_mode(row, value, strlen(value), &o->trace.opentelemetry);
        return options_value_bad(row, key, "level, rate, count or mode");
    }
    if (strcmp(mode, "triton") == 0) {
        if (strcmp(key, "file") == 0)
            return options_trace_file(row, value, o);
        if (strcmp(key, "log-frequency") == 0)
            return options_trace_amount(row, value, o, TRACE_FREQUENCY);
        return options_value_bad(row, key, "triton,file or triton,log-frequency");
    }
    for (size_t i = 0; i < sizeof(telemetry) / sizeof(*telemetry); i++)
        if (strcmp(key, telemetry[i]) == 0)
            return options_trace_telemetry(row, key, value, o);
    return options_value_bad(row, key,
                             "opentelemetry,url, resource, bsp_max_queue_size, bsp_schedule_delay "
                             "or bsp_max_export_batch_size");
}

/* [<mode>,]<setting>=<value> */
static struct err *options_trace_config(const struct options_row *row, const char *value,
                                        struct options *o)
{
    size_t mode_len = strcspn(value, ",=");
    const char *mode = "", *key = value;
    if (value[mode_len] == ',') {
        bool opentelemetry;
        struct err *e = options_trace_mode(row, value, mode_len, &opentelemetry);
        if (e)
            return e;
        mode = opentelemetry ? "opentelemetry" : "triton";
        key = value + mode_len + 1;
    }
    const char *equals = strchr(key, '=');
    if (!equals || equals == key || !equals[1])
        return options_value_bad(row, value, "[<mode>,]<setting>=<value>");
    return options_trace_setting(row, mode, options_value_keep(o, key, (size_t)(equals - key)),
                                 equals + 1, o);
}

void options_trace_of_file(struct options_trace *t)
{
    t->levels_of_file = true;
    t->configured = 0;
}

struct err *options_trace_set(const struct options_row *row, const char *value, struct options *o)
{
    if (row->kind == OPTIONS_KIND_TRACE_CONFIG)
        return options_trace_config(row, value, o);
    if (row->kind == OPTIONS_KIND_TRACE_FILE)
        return options_trace_file(row, value, o);
    if (row->kind == OPTIONS_KIND_TRACE_LEVEL)
        return options_trace_level(row, value, &o->trace);
    return options_trace_amount(row, value, o,
                                row->kind == OPTIONS_KIND_TRACE_RATE    ? TRACE_RATE
                                : row->kind == OPTIONS_KIND_TRACE_COUNT ? TRACE_COUNT
                                                                        : TRACE_FREQUENCY);
}
