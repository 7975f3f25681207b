#pragma once
/* The rows of options.def, for the files that read, set and show options. */
#include "server/options/options.h"

enum options_kind {
    OPTIONS_KIND_KNOWN, /* not served */
    OPTIONS_KIND_TUNES, /* without effect */
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
    OPTIONS_KIND_FILENAME,
    OPTIONS_KIND_CACHE_CONFIG,
    OPTIONS_KIND_CACHE_JSON,
    OPTIONS_KIND_CACHE_SIZE,
    OPTIONS_KIND_RESTRICTION,
    OPTIONS_KIND_COMPRESSION,
    OPTIONS_KIND_LATENCIES,
    OPTIONS_KIND_RATE_LIMIT,
    OPTIONS_KIND_RATE_RESOURCE,
    OPTIONS_KIND_HOST_POLICY,
};

struct options_row {
    const char *group;
    const char *name;
    enum options_kind kind;
    size_t offset; /* of the field in struct options */
    /* the default; of KNOWN: the values that are accepted, parted by '|'; of TUNES: the form of
     * its values */
    const char *standard;
    const char *value; /* as shown */
    const char *help;
};

/* options_row_all - in the order of the table. */
const struct options_row *options_row_all(size_t *ret_count);

/* options_row_find - by name; NULL when there is none. */
const struct options_row *options_row_find(const char *name, size_t len);

/* options_row_abbreviated - the one row whose name begins so; NULL when there is none, or more:
 * then *ret_other is one of them. */
const struct options_row *options_row_abbreviated(const char *name, size_t len,
                                                  const struct options_row **ret_other);

/* options_row_nearest - the name that is closest to one that does not exist; NULL when none is
 * close. */
const char *options_row_nearest(const char *name, size_t len);

/* options_row_warn - note that an option was given that is deprecated, or does nothing. */
void options_row_warn(const struct options_row *row, struct options *o);

/* options_value_set - give an option its value.
 * value   may be NULL for a FLAG; borrowed as long as *o lives
 * errors  INVALID_ARG that names the option, the value, and what is allowed */
struct err *options_value_set(const struct options_row *row, const char *value, struct options *o);

/* options_value_keep - a copy that lives as long as *o. */
const char *options_value_keep(struct options *o, const char *s, size_t len);

/* options_value_warn - a line for the log, once it is open; each is kept once. */
__attribute__((format(printf, 2, 3))) void options_value_warn(struct options *o, const char *fmt,
                                                              ...);

/* options_value_forget - free those copies. */
void options_value_forget(struct options *o);

/* options_value_bool - what "true", "1", "yes", "on", or their opposites say; false when it is
 * none of them. */
bool options_value_bool(const char *value, bool *ret);

/* options_file_read - set what a file of options says.
 * errors  what file_read says; INVALID_ARG with file and line */
struct err *options_file_read(const char *path, struct options *o);
