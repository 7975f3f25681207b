#pragma once
/* The log of the process: leveled lines in the reference's formats, rate limited per call site. Payloads are never logged.
 * Any thread; never under a lock of the request path. */
#include <stdbool.h>
#include <stdint.h>

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
};

struct log_settings {
    bool info;
    bool warning;
    bool error;
    uint32_t verbose; /* lines of LOG_V(n, ...) with n <= verbose are written */
    enum log_format format;
    int fd; /* where lines go; 2 by default */
};

/* log_get, log_set - read or replace the settings. */
struct log_settings log_get(void);
void log_set(const struct log_settings *settings);

/* log_enabled - whether a line of this level would be written (verbose: of level 1). */
bool log_enabled(enum log_level level);
bool log_verbose_enabled(uint32_t n);

/* One call site: lines beyond LOG_BURST a second are held back and counted. Static storage only. */
struct log_site {
    _Atomic uint32_t second;
    _Atomic uint32_t lines;
};

/* log_line - write one line; `file` may be a path, only its last part is shown. */
__attribute__((format(printf, 5, 6))) void log_line(struct log_site *site, enum log_level level,
                                                    const char *file, int line, const char *fmt,
                                                    ...);

#define LOG_AT_(level, ...)                                                 \
    do {                                                                    \
        static struct log_site log_site_;                                   \
        if (log_enabled(level))                                             \
            log_line(&log_site_, (level), __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
#define LOG_ERROR(...) LOG_AT_(LOG_LEVEL_ERROR, __VA_ARGS__)
#define LOG_WARN(...)  LOG_AT_(LOG_LEVEL_WARN, __VA_ARGS__)
#define LOG_INFO(...)  LOG_AT_(LOG_LEVEL_INFO, __VA_ARGS__)
#define LOG_VERBOSE(n, ...)                                                           \
    do {                                                                              \
        static struct log_site log_site_;                                             \
        if (log_verbose_enabled(n))                                                   \
            log_line(&log_site_, LOG_LEVEL_VERBOSE, __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
