#pragma once
/* The log of the process: leveled lines in the reference's formats or as JSON, rate limited per
 * call site. Payloads are never logged. Any thread; never under a lock of the request path. */
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
    LOG_FORMAT_JSON = 2,    /* an object a line */
};

/* Lines of info and verbose go to the standard output, warnings and errors to the standard
 * error. */
#define LOG_FD_STANDARD (-1)

struct log_settings {
    bool info;
    bool warning;
    bool error;
    bool escape; /* the message is a JSON string, so that it cannot forge a line; else as it is */
    uint32_t verbose; /* lines of LOG_VERBOSE(n, ...) with n <= verbose are written */
    enum log_format format;
    int fd; /* where lines go, or LOG_FD_STANDARD */
};

/* log_get, log_set - read or replace the settings. At first: everything but verbose, the default
 * format, LOG_FD_STANDARD; escape unless TRITON_SERVER_ESCAPE_LOG_MESSAGES is 0 in the
 * environment. Each line follows the settings of one moment. */
struct log_settings log_get(void);
void log_set(const struct log_settings *settings);

/* log_set_writer - what writes a whole line to a descriptor, in place of write(2). Before other
 * threads log. */
typedef void log_write_fn(int fd, const char *line, size_t len);
void log_set_writer(log_write_fn *fn);

/* Components are the folders right below src/, and "backends": what backends log through the C
 * API. base/log_components.h is made of src/LAYERS: LOG_COMPONENTS "abi, backends, ...",
 * LOG_COMPONENT_COUNT, and LOG_COMPONENT_BACKENDS, the place of "backends". */

/* log_component_known - whether there is a component of that name. */
bool log_component_known(const char *name, size_t len);

/* log_component_set - the verbose level of a known component, in place of the general one;
 * LOG_AS_GENERAL = that one again. */
#define LOG_AS_GENERAL UINT32_MAX
void log_component_set(const char *name, uint32_t verbose);

/* The verbose levels of all components, in the order of LOG_COMPONENTS. */
struct log_levels {
    uint32_t of[LOG_COMPONENT_COUNT];
};

/* log_levels_get - as they are. */
struct log_levels log_levels_get(void);

/* log_levels_parse - "http=1,grpc=2": what is not named is as the general level.
 * errors  INVALID_ARG: what is wrong with it */
struct err *log_levels_parse(const char *text, size_t len, struct log_levels *ret);

/* log_levels_put - the same text of those that are not as the general level; nothing when all
 * are. */
void log_levels_put(const struct log_levels *levels, struct strbuf *sb);

/* log_update - change some of the settings; who changes others at the same time is not undone.
 * what    LOG_UPDATE_*: which members of `to` are meant
 * levels  NULL = they stay */
#define LOG_UPDATE_INFO    1u
#define LOG_UPDATE_WARNING 2u
#define LOG_UPDATE_ERROR   4u
#define LOG_UPDATE_VERBOSE 8u
#define LOG_UPDATE_FORMAT  16u
void log_update(const struct log_settings *to, unsigned what, const struct log_levels *levels);

/* log_enabled - whether a line of this level would be written (verbose: of level 1, by a
 * backend). */
bool log_enabled(enum log_level level);

/* log_verbose_enabled - whether any component writes lines of verbose level n. */
bool log_verbose_enabled(uint32_t n);

/* log_context - what the calling thread works on from here on, for its lines and for a crash:
 * one request, or a batch.
 * first_id  of its first request, "" = has none; copied, LOG_CONTEXT_BYTES of it
 * requests  how many they are; 0 = none */
#define LOG_CONTEXT_BYTES 64
void log_context(const char *first_id, uint32_t requests);

/* log_context_get - as the calling thread set it; the id is valid on this thread. Safe in a
 * signal handler. */
void log_context_get(const char **ret_first_id, uint32_t *ret_requests);

/* One call site: lines beyond a thousand a second are held back and counted. Its next line in
 * another second says how many; of sites that last also the first line of any other. */
struct log_site {
    _Atomic uint32_t second;
    _Atomic uint32_t lines;
    _Atomic uint32_t component; /* 0 = not looked up yet, 1 = none, n + 2 = the n-th */
    bool lasts;                 /* it lies in static storage */
    _Atomic bool listed;        /* among those that held lines back; then the rest is set */
    struct log_site *next;
    const char *file;
    int line;
    enum log_level level;
};

/* log_say_held - the lines that say how many were held back until now. */
void log_say_held(void);

/* log_site_verbose - whether this call site, in `file`, writes lines of verbose level n. */
bool log_site_verbose(struct log_site *site, const char *file, uint32_t n);

/* log_line - write one line; `file` may be a path, only its last part is shown. */
__attribute__((format(printf, 5, 6))) void log_line(struct log_site *site, enum log_level level,
                                                    const char *file, int line, const char *fmt,
                                                    ...);

/* log_table - a text of several lines as one entry: the reference puts it, unescaped, below the
 * line. */
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
