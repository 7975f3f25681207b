#pragma once
/* The options of traces: --trace-config, and the deprecated ones that it takes the place of. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct options;
struct options_row;

#define OPTIONS_MAX_TRACE_SETTINGS 32

/* A setting of the mode opentelemetry. */
struct options_trace_setting {
    const char *key;
    const char *value;
};

struct options_trace {
    uint32_t level; /* bits of TRITONSERVER_InferenceTraceLevel that were asked for */
    bool off;       /* OFF was given, too: it wins */
    uint32_t rate;
    int32_t count;
    uint32_t frequency;
    const char *file;    /* NULL = none */
    unsigned configured; /* which of them --trace-config gave: it wins over the others */
    bool levels_of_file; /* levels of the command line replace these */
    bool opentelemetry;
    struct options_trace_setting settings[OPTIONS_MAX_TRACE_SETTINGS];
    size_t setting_count;
};

/* options_trace_of_file - what has been set so far comes from the file of --config: whatever
 * option of the command line gives it again replaces it. */
void options_trace_of_file(struct options_trace *t);

/* options_trace_set - give one of them its value.
 * errors  INVALID_ARG that names the option, the value, and what is allowed */
struct err *options_trace_set(const struct options_row *row, const char *value, struct options *o);
