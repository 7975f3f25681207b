#pragma once
/* The log of the process: lines with levels, in the reference's formats or as JSON, with a rate
 * limit per call site. Payloads are never logged. Any thread; never under a lock of the request
 * path. */
#include "base/log_components.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct strbuf;

/* Values of TRITONSERVER_LogLevel. */
enum log_level {
    LOG_LEVEL_INFO = 0,
    LOG_LEVEL_WARN = 1,
    LOG_LEVEL_ERROR = 2,
    LOG_LEVEL_VERBOSE = 3,
};

enum log_format {
    LOG_FORMAT_DEFAULT = 0, /* I1121 10:26:55.123456 PID file.c:12] "message" */
    LOG_FORMAT_ISO8601 = 1, /* 2026-11-21T10:26:55Z I PID file.c:12] "message" */
    LOG_FORMAT_JSON = 2,    /* one object per line */
};

/* Info and verbose lines go to the standard output, warnings and errors to the standard error. */
#define LOG_FD_STANDARD (-1)

struct log_settings {
    bool info;
    bool warning;
    bool error;
    /* write the message as a JSON string, so that it cannot forge a line; else unchanged */
    bool escape;
    uint32_t verbose; /* LOG_VERBOSE(n, ...) writes a line if n <= verbose */
    enum log_format format;
    int fd; /* where lines go, or LOG_FD_STANDARD */
};

/* log_get, log_set - read or replace the settings. Initially: everything except verbose, the
 * default format, LOG_FD_STANDARD; escape, unless the environment sets
 * TRITON_SERVER_ESCAPE_LOG_MESSAGES to 0. A line never mixes old and new settings. */
struct log_settings log_get(void);
void log_set(const struct log_settings *settings);

/* log_set_writer - the function that writes a line to a descriptor, instead of write(2). Call it
 * before other threads log. */
typedef void log_write_fn(int fd, const char *line, size_t len);
void log_set_writer(log_write_fn *fn);

/* The components are the folders directly below src/, and "backends" for what backends log
 * through the C API. base/log_components.h is generated from src/LAYERS: LOG_COMPONENTS "abi,
 * backends, ...", LOG_COMPONENT_COUNT, and LOG_COMPONENT_BACKENDS, the index of "backends". */

/* log_component_known - true if a component has this name. */
bool log_component_known(const char *name, size_t len);

/* log_component_set - set the verbose level of a known component; LOG_AS_GENERAL = use the
 * general level. */
#define LOG_AS_GENERAL UINT32_MAX
void log_component_set(const char *name, uint32_t verbose);

/* The verbose levels of all components, in the order of LOG_COMPONENTS. */
struct log_levels {
    uint32_t of[LOG_COMPONENT_COUNT];
};

/* log_levels_get - the current levels. */
struct log_levels log_levels_get(void);

/* log_levels_parse - parse "http=1,grpc=2"; components that are not named use the general level.
 * errors  INVALID_ARG with the mistake */
struct err *log_levels_parse(const char *text, size_t len, struct log_levels *ret);

/* log_levels_put - write the levels that differ from the general level in the same format;
 * nothing if none differs. */
void log_levels_put(const struct log_levels *levels, struct strbuf *sb);

/* log_update - change some of the settings. Changes that other threads make at the same time are
 * kept.
 * what    LOG_UPDATE_*: the members of `to` to apply
 * levels  NULL = unchanged */
#define LOG_UPDATE_INFO    1u
#define LOG_UPDATE_WARNING 2u
#define LOG_UPDATE_ERROR   4u
#define LOG_UPDATE_VERBOSE 8u
#define LOG_UPDATE_FORMAT  16u
void log_update(const struct log_settings *to, unsigned what, const struct log_levels *levels);

/* log_enabled - true if a line of this level would be written (verbose: level 1, from a
 * backend). */
bool log_enabled(enum log_level level);

/* log_verbose_enabled - true if any component writes lines of verbose level n. */
bool log_verbose_enabled(uint32_t n);

/* log_context - what the calling thread works on from here on: a request or a batch. Its log
 * lines and a crash report show it.
 * first_id  id of the first request, "" = no id; the first LOG_CONTEXT_BYTES are copied
 * requests  how many requests; 0 = none */
#define LOG_CONTEXT_BYTES 64
void log_context(const char *first_id, uint32_t requests);

/* log_context_get - the context of the calling thread; the id is valid on this thread. Safe in a
 * signal handler. */
void log_context_get(const char **ret_first_id, uint32_t *ret_requests);

/* What a thread does for a model; a crash report shows it. */
struct log_work {
    const char *what;  /* "loading", "executing" or "finalizing"; NULL = nothing */
    const char *model; /* "model 'resnet', version 1" */
};

/* log_work_set - what the calling thread does from here on. Both texts are borrowed until the next
 * call. Returns what it did before, which is set again when the work ends. */
struct log_work log_work_set(struct log_work now);

/* log_work_get - what the calling thread does. Safe in a signal handler. */
struct log_work log_work_get(void);

/* A call site. Lines beyond a thousand per second are held back and counted. Its next line in a
 * later second tells how many were held back. If the site is in static storage, the first later
 * line of any other site does so too. */
struct log_site {
    _Atomic uint32_t second;
    _Atomic uint32_t lines;
    _Atomic uint32_t component; /* 0 = not looked up yet, 1 = none, n + 2 = the n-th */
    bool lasts;                 /* it is in static storage */
    /* in the list of sites that held lines back; the fields below are set then */
    _Atomic bool listed;
    struct log_site *next;
    const char *file;
    int line;
    enum log_level level;
};

/* log_say_held - write the lines that tell how many were held back. */
void log_say_held(void);

/* log_site_verbose - true if this call site, in `file`, writes lines of verbose level n. */
bool log_site_verbose(struct log_site *site, const char *file, uint32_t n);

/* log_line - write one line; `file` may be a path, only its last part is shown. */
__attribute__((format(printf, 5, 6))) void log_line(struct log_site *site, enum log_level level,
                                                    const char *file, int line, const char *fmt,
                                                    ...);

/* log_table - log a text of several lines as one entry. Like the reference, it puts the text,
 * unescaped, below the line. */
void log_table(struct log_site *site, enum log_level level, const char *file, int line,
               const char *text);

#define LOG_AT_(level, ...)                                                 \
    do {                                                                    \
        static struct log_site log_site_ = {.lasts = true};                 \
        if (log_enabled(level))                                             \
            log_line(&log_site_, (level), __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
#define LOG_ERROR(...) LOG_AT_(LOG_LEVEL_ERROR, __VA_ARGS__)
#define LOG_WARN(...)  LOG_AT_(LOG_LEVEL_WARN, __VA_ARGS__)
#define LOG_INFO(...)  LOG_AT_(LOG_LEVEL_INFO, __VA_ARGS__)
#define LOG_VERBOSE(n, ...)                                                           \
    do {                                                                              \
        static struct log_site log_site_ = {.lasts = true};                           \
        if (log_verbose_enabled(n) && log_site_verbose(&log_site_, __FILE__, (n)))    \
            log_line(&log_site_, LOG_LEVEL_VERBOSE, __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
#define LOG_TABLE(text)                                                        \
    do {                                                                       \
        static struct log_site log_site_;                                      \
        if (log_enabled(LOG_LEVEL_INFO))                                       \
            log_table(&log_site_, LOG_LEVEL_INFO, __FILE__, __LINE__, (text)); \
    } while (0)
