#pragma once
/* The logging extension without its protocols: what a request changes of the log's settings, and
 * how they are told. Requests are applied as a whole: one that is refused changes nothing. Any
 * thread.
 * source  spec/logging_extension.txt */
#include "base/err.h"
#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_change {
    unsigned what; /* LOG_UPDATE_*: the members of `to` that are given */
    struct log_settings to;
    bool with_levels;
    struct log_levels levels;
};

/* log_change_verbose - a verbose level of the client: above INT32_MAX it means what the
 * reference makes of it. */
void log_change_verbose(struct log_change *c, uint64_t level);

/* log_change_format - default, ISO8601, or ours: json; false = there is no such format. */
bool log_change_format(struct log_change *c, const char *name, size_t len);

/* log_change_components - "http=1,grpc=2", ours: the verbose levels of these components; others
 * are as the general one.
 * errors  those of log_levels_parse, with the key in front */
struct err *log_change_components(struct log_change *c, const char *text, size_t len);

/* log_change_no_file - the error of a request that names another file. */
struct err *log_change_no_file(void);

/* log_change_apply - from here on lines follow it. */
void log_change_apply(const struct log_change *c);

/* The settings as both protocols tell them. */
struct log_told {
    const char *file; /* "" = the standard streams */
    struct log_settings settings;
    const char *format;
    char *components; /* NULL = no component has a level of its own; else the caller's (mem_free) */
};

/* log_change_told - as they are. */
struct log_told log_change_told(const char *file);
