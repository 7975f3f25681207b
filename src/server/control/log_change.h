#pragma once
/* The logging extension, independent of the protocol: applies a request's changes to the log
 * settings, and describes the settings. A request is applied completely or, if it is refused,
 * not at all. Any thread.
 * source  spec/logging_extension.txt */
#include "base/err.h"
#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_change {
    unsigned what; /* LOG_UPDATE_*: which members of `to` are set */
    struct log_settings to;
    bool with_levels;
    struct log_levels levels;
};

/* log_change_verbose - set the verbose level that a client sent; a level above INT32_MAX is
 * converted as in the reference. */
void log_change_verbose(struct log_change *c, uint64_t level);

/* log_change_format - default, ISO8601, or Nereid's own json; false = unknown format. */
bool log_change_format(struct log_change *c, const char *name, size_t len);

/* log_change_components - "http=1,grpc=2", an addition of Nereid's: the verbose levels of these
 * components; others use the general level.
 * errors  those of log_levels_parse, prefixed with the key */
struct err *log_change_components(struct log_change *c, const char *text, size_t len);

/* log_change_no_file - the error for a request that names another file. */
struct err *log_change_no_file(void);

/* log_change_apply - apply the changes. */
void log_change_apply(const struct log_change *c);

/* The settings as both protocols show them. */
struct log_told {
    const char *file; /* "" = the standard streams */
    struct log_settings settings;
    const char *format;
    /* NULL = no component has its own level; else the caller frees it (mem_free) */
    char *components;
};

/* log_change_told - the current settings. */
struct log_told log_change_told(const char *file);
