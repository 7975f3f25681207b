#pragma once
/* The options of the command line and the C API. options.def has one row per option. */
#include "base/err.h"
#include "base/log.h"
#include "server/options/options_clouds.h"
#include "server/options/options_front.h"
#include "server/options/options_gpus.h"
#include "server/options/options_limits.h"
#include "server/options/options_trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX_REPOSITORIES   64
#define OPTIONS_MAX_BACKEND_CONFIG 256
#define OPTIONS_MAX_LOAD_MODELS    1024
#define OPTIONS_MAX_CACHE_SETTINGS 64
#define OPTIONS_MAX_CORS_ORIGINS   32
#define OPTIONS_MAX_COMPONENTS     32
#define OPTIONS_MAX_WARNINGS       64
#define OPTIONS_MAX_LOOP_THREADS   256
/* a budget of memory below this, in bytes, is hardly what somebody meant */
#define OPTIONS_SMALL_BUDGET ((uint64_t)1 << 20)

struct options_backend_setting {
    const char *backend; /* "" = for the server itself */
    const char *key;
    const char *value;
};

/* A setting of a response cache. */
struct options_cache_setting {
    const char *cache;
    const char *key; /* NULL = no file */
    const char *value;
    bool deprecated; /* set by --response-cache-byte-size */
};

struct options_component {
    const char *name;
    uint32_t verbose;
};

/* When models are loaded. */
enum options_control_mode {
    OPTIONS_CONTROL_NONE,
    OPTIONS_CONTROL_POLL,
    OPTIONS_CONTROL_EXPLICIT,
};

struct options_string;

struct options {
    const char *config_file; /* NULL = none */
    const char *server_id;
    const char *repositories[OPTIONS_MAX_REPOSITORIES];
    size_t repository_count;
    bool exit_on_error;
    bool web; /* the live page is served on the HTTP port */
    bool strict_readiness;
    bool disable_auto_complete; /* as given; auto_complete_config is the result */
    bool strict_model_config;
    bool auto_complete_config;
    uint32_t exit_timeout_secs;
    const char *api_keys_file; /* NULL = none */
    uint32_t model_load_threads;
    enum options_control_mode control_mode;
    uint32_t poll_secs;
    const char *load_models[OPTIONS_MAX_LOAD_MODELS];
    size_t load_model_count;
    const char *model_config_name; /* NULL = none */
    uint32_t model_load_retries;
    bool model_namespacing;
    bool allow_library_upload;
    const char *backend_directory;
    struct options_backend_setting backend_settings[OPTIONS_MAX_BACKEND_CONFIG];
    size_t backend_setting_count;
    const char *cache_directory;
    struct options_cache_setting cache_settings[OPTIONS_MAX_CACHE_SETTINGS];
    size_t cache_setting_count;
    const char *repoagent_directory;
    struct options_limits limits;
    struct options_gpus gpus;

    bool allow_http;
    const char *http_address;
    uint16_t http_port;
    bool reuse_http_port;
    uint64_t http_max_input_bytes;
    uint32_t http_header_timeout_secs;
    uint32_t http_stall_timeout_secs;
    uint32_t http_idle_timeout_secs;
    const char *http_header_pattern; /* "" = no headers are forwarded */
    struct options_restrictions http_restrictions;
    const char *http_cors_origins[OPTIONS_MAX_CORS_ORIGINS]; /* "*" = all */
    size_t http_cors_origin_count;
    struct options_tls http_tls;
    bool allow_grpc;
    const char *grpc_address;
    uint16_t grpc_port;
    bool reuse_grpc_port;
    const char *grpc_header_pattern;               /* "" = no metadata are forwarded */
    struct options_restrictions grpc_restrictions; /* headers without triton-grpc-protocol- */
    struct options_tls grpc_tls;
    enum options_compression grpc_compression;
    uint32_t grpc_keepalive_ms;
    uint32_t grpc_keepalive_timeout_ms;
    bool grpc_keepalive_without_calls;
    uint32_t grpc_max_pings; /* 0 = no limit */
    uint32_t grpc_min_ping_interval_ms;
    uint32_t grpc_max_ping_strikes; /* 0 = no limit */
    uint32_t grpc_max_age_ms;       /* 0 = no limit */
    uint32_t grpc_max_age_grace_ms; /* 0 = no limit */
    bool allow_metrics;
    const char *metrics_address; /* NULL = the same as http_address */
    uint16_t metrics_port;
    struct options_tls metrics_tls;
    struct options_openai openai;
    struct options_sagemaker sagemaker;
    struct options_vertex vertex;
    bool allow_cpu_metrics;
    bool allow_gpu_metrics;
    uint32_t metrics_interval_ms;
    struct options_latencies latencies;

    bool inline_execution;
    uint32_t loop_threads; /* 0 = one per core that the process may use */
    bool allow_client_shm;
    uint64_t client_shm_bytes;    /* 0 = the memory that the process may use */
    uint64_t memory_budget_bytes; /* 0 = half of the memory that the process may use */

    bool log_info;
    bool log_warning;
    bool log_error;
    uint32_t log_verbose;
    struct options_component log_components[OPTIONS_MAX_COMPONENTS];
    size_t log_component_count;
    enum log_format log_format;
    const char *log_file;   /* NULL = the standard streams */
    const char *access_log; /* NULL = none, "-" = the standard output */
    struct options_trace trace;

    /* Results of reading the options. */
    const char *warnings[OPTIONS_MAX_WARNINGS]; /* log lines */
    size_t warning_count;
    size_t repositories_of_file;    /* how many repositories came from the file */
    struct options_string *strings; /* strings that the other fields point to */
};

/* What the command line asks the process to do. */
enum options_action {
    OPTIONS_RUN,
    OPTIONS_HELP,
    OPTIONS_VERSION,
};

/* options_defaults - set all options to their defaults. Strings point to static memory. */
void options_defaults(struct options *o);

/* options_parse - read the file of --config, then the command line, into *o, which holds the
 * defaults. Strings point into argv or belong to o. "--name=value" and "--name value" are equal;
 * a name may be abbreviated if it stays unique. If a scalar is given twice, the last value
 * counts.
 * errors  INVALID_ARG that names the option, the value and the allowed values; for the file also
 *         the line */
struct err *options_parse(int argc, char *const *argv, struct options *o, enum options_action *ret);

enum options_fate {
    OPTIONS_TAKEN,
    OPTIONS_IGNORED, /* accepted, but without effect */
    OPTIONS_REFUSED,
    OPTIONS_VALUE_REFUSED, /* there is such an option, and another value may be taken */
};

/* options_tried_fn - an option was tried.
 * value  NULL = none was given
 * why    the error or the warning; NULL = there is none. All are borrowed for the call */
typedef void (*options_tried_fn)(void *arg, enum options_fate fate, const char *name,
                                 const char *value, const char *why);

/* options_try - set the options of a command line without its program's name as options_parse
 * does, but go on after one that is refused, and tell of each. No file is read. */
void options_try(int argc, char *const *argv, struct options *o, options_tried_fn tried, void *arg);

/* options_fini - free what options_parse allocated. */
void options_fini(struct options *o);

/* options_help - the text of --help; the caller frees it (mem_free). */
char *options_help(void);
