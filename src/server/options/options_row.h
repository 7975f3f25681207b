#pragma once
/* The rows of options.def, for the files that read, set and show options. */
#include "server/options/options.h"

enum options_kind {
    OPTIONS_KIND_TUNES, /* accepted, but without effect */
    OPTIONS_KIND_FLAG,
    OPTIONS_KIND_BOOL,
    OPTIONS_KIND_U16,
    OPTIONS_KIND_U32,
    OPTIONS_KIND_U64,
    OPTIONS_KIND_SIZE,
    OPTIONS_KIND_SECONDS,
    OPTIONS_KIND_THREADS,
    OPTIONS_KIND_LEVEL,
    OPTIONS_KIND_STRING,
    OPTIONS_KIND_ADDRESS,
    OPTIONS_KIND_FILE,
    OPTIONS_KIND_LOG_FORMAT,
    OPTIONS_KIND_REPOSITORY,
    OPTIONS_KIND_BACKEND_CONFIG,
    OPTIONS_KIND_LOG_COMPONENT,
    OPTIONS_KIND_CONTROL_MODE,
    OPTIONS_KIND_LOAD_MODEL,
    OPTIONS_KIND_CORS_ORIGIN,
    OPTIONS_KIND_FILENAME,
    OPTIONS_KIND_CACHE_CONFIG,
    OPTIONS_KIND_CACHE_JSON,
    OPTIONS_KIND_CACHE_SIZE,
    OPTIONS_KIND_RESTRICTION,
    OPTIONS_KIND_COMPRESSION,
    OPTIONS_KIND_LATENCIES,
    OPTIONS_KIND_PORT_RANGE,
    OPTIONS_KIND_RATE_LIMIT,
    OPTIONS_KIND_RATE_RESOURCE,
    OPTIONS_KIND_HOST_POLICY,
    OPTIONS_KIND_GPU_POOL,
    OPTIONS_KIND_GPU_LIMIT,
    OPTIONS_KIND_CAPABILITY,
    OPTIONS_KIND_TRACE_CONFIG,
    OPTIONS_KIND_TRACE_FILE,
    OPTIONS_KIND_TRACE_LEVEL,
    OPTIONS_KIND_TRACE_RATE,
    OPTIONS_KIND_TRACE_COUNT,
    OPTIONS_KIND_TRACE_FREQUENCY,
};

struct options_row {
    const char *group;
    const char *name;
    enum options_kind kind;
    size_t offset;        /* of the field in struct options */
    const char *standard; /* the default; for TUNES: the form of its values */
    const char *value;    /* the value's name in the help */
    const char *help;
};

/* options_row_all - all rows, in the order of the table. */
const struct options_row *options_row_all(size_t *ret_count);

/* options_row_find - the row with a name; NULL if there is none. */
const struct options_row *options_row_find(const char *name, size_t len);

/* options_row_abbreviated - the only row whose name begins with `name`; NULL if there is none or
 * several; *ret_other is then one of several. */
const struct options_row *options_row_abbreviated(const char *name, size_t len,
                                                  const struct options_row **ret_other);

/* options_row_nearest - the name most similar to an unknown one; NULL if none is similar. */
const char *options_row_nearest(const char *name, size_t len);

/* options_row_warn - note a warning: the option is deprecated or has no effect. */
void options_row_warn(const struct options_row *row, struct options *o);

/* options_value_set - set an option.
 * value   may be NULL for a FLAG; borrowed as long as *o lives
 * errors  INVALID_ARG that names the option, the value and the allowed values */
struct err *options_value_set(const struct options_row *row, const char *value, struct options *o);

/* options_value_bad - the error for a value that is not one of those allowed. */
struct err *options_value_bad(const struct options_row *row, const char *value,
                              const char *allowed);

/* options_value_keep - make a copy that lives as long as *o. */
const char *options_value_keep(struct options *o, const char *s, size_t len);

/* options_value_warn - add a line that is logged when the log is open; duplicates are dropped. */
__attribute__((format(printf, 2, 3))) void options_value_warn(struct options *o, const char *fmt,
                                                              ...);

/* options_value_forget - free the copies. */
void options_value_forget(struct options *o);

/* options_value_bool - parse "true", "1", "yes", "on", or their opposites; false for any other
 * text. */
bool options_value_bool(const char *value, bool *ret);

/* options_file_read - set the options of a file.
 * errors  those of file_read; INVALID_ARG with file and line */
struct err *options_file_read(const char *path, struct options *o);
