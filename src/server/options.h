#pragma once
/* What the command line and the C API can set. One row an option in options.def. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX_REPOSITORIES   64
#define OPTIONS_MAX_BACKEND_CONFIG 256

struct options_backend_setting {
    const char *backend; /* "" = for the server itself */
    const char *key;
    const char *value;
};

struct options {
    const char *server_id;
    const char *repositories[OPTIONS_MAX_REPOSITORIES];
    size_t repository_count;
    bool exit_on_error;
    bool strict_readiness;
    bool auto_complete_config;
    uint32_t exit_timeout_secs;
    uint32_t model_load_threads;
    const char *backend_directory;
    struct options_backend_setting backend_settings[OPTIONS_MAX_BACKEND_CONFIG];
    size_t backend_setting_count;

    bool allow_http;
    const char *http_address;
    uint16_t http_port;
    bool reuse_http_port;
    uint64_t http_max_input_bytes;
    bool allow_grpc;
    const char *grpc_address;
    uint16_t grpc_port;
    bool reuse_grpc_port;
    bool allow_metrics;
    const char *metrics_address;
    uint16_t metrics_port;

    bool inline_execution;
    uint32_t loop_threads;        /* 0 = one per core that the process may use */
    uint64_t memory_budget_bytes; /* 0 = half of the memory that the process may use */

    bool log_info;
    bool log_warning;
    bool log_error;
    uint32_t log_verbose;
    bool log_iso8601;
};

/* What the command line asks for. */
enum options_action {
    OPTIONS_RUN,
    OPTIONS_HELP,
};

/* options_defaults - as without any option. Strings point to static memory. */
void options_defaults(struct options *o);

/* options_parse - read the command line into *o, which holds the defaults. Strings point into argv, or live as long as the
 * process. "--name=value" and "--name value" are the same.
 * errors  INVALID_ARG that names the option, the value, and what is allowed */
struct err *options_parse(int argc, char *const *argv, struct options *o, enum options_action *ret);

/* options_help - the text of --help, the caller's (mem_free). */
char *options_help(void);
