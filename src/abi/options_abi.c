/* TRITONSERVER_ServerOptions functions: each sets an option of the command line. */
#include "plugin/handle.h"
#include "base/strbuf.h"
#include "plugin/host_policy.h"
#include "server/embed.h"

#include <inttypes.h>
#include <string.h>

static const char type[] = "TRITONSERVER_ServerOptions";

static TRITONSERVER_Error *set_text(TRITONSERVER_ServerOptions *options, const char *name,
                                    const char *value)
{
    struct embed_options *o = embed_options_of(options);
    if (!o)
        return handle_invalid(type);
    if (!value)
        return handle_null(type, name);
    return handle_error(embed_options_set(o, name, value));
}

static TRITONSERVER_Error *set_bool(TRITONSERVER_ServerOptions *options, const char *name,
                                    bool value)
{
    return set_text(options, name, value ? "true" : "false");
}

static TRITONSERVER_Error *options_abi_set_number(TRITONSERVER_ServerOptions *options,
                                                  const char *name, uint64_t value)
{
    struct embed_options *o = embed_options_of(options);
    if (!o)
        return handle_invalid(type);
    return handle_error(embed_options_setf(o, name, "%" PRIu64, value));
}

/* Sets an option to GROUP,KEY=VALUE, or to KEY=VALUE for the group "". */
static TRITONSERVER_Error *set_grouped(TRITONSERVER_ServerOptions *options, const char *name,
                                       const char *group, const char *key, const char *value)
{
    struct embed_options *o = embed_options_of(options);
    if (!o)
        return handle_invalid(type);
    if (!group || !key || !value)
        return handle_null(type, name);
    return handle_error(
        embed_options_setf(o, name, "%s%s%s=%s", group, *group ? "," : "", key, value));
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsNew(TRITONSERVER_ServerOptions **options)
{
    *options = (TRITONSERVER_ServerOptions *)embed_options_new();
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsDelete(TRITONSERVER_ServerOptions *options)
{
    struct embed_options *o = embed_options_of(options);
    if (options && !o)
        return handle_invalid(type);
    embed_options_free(o);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetServerId(TRITONSERVER_ServerOptions *options,
                                                          const char *server_id)
{
    return set_text(options, "id", server_id);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelRepositoryPath(TRITONSERVER_ServerOptions *options,
                                                 const char *model_repository_path)
{
    return set_text(options, "model-repository", model_repository_path);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictModelConfig(TRITONSERVER_ServerOptions *options, bool strict)
{
    return set_bool(options, "strict-model-config", strict);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelConfigName(TRITONSERVER_ServerOptions *options,
                                             const char *model_config_name)
{
    return set_text(options, "model-config-name", model_config_name);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetStartupModel(TRITONSERVER_ServerOptions *options,
                                                              const char *model_name)
{
    return set_text(options, "load-model", model_name);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetExitOnError(TRITONSERVER_ServerOptions *options,
                                                             bool exit)
{
    return set_bool(options, "exit-on-error", exit);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetStrictReadiness(TRITONSERVER_ServerOptions *options, bool strict)
{
    return set_bool(options, "strict-readiness", strict);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetExitTimeout(TRITONSERVER_ServerOptions *options,
                                                             unsigned int timeout)
{
    return options_abi_set_number(options, "exit-timeout-secs", timeout);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(TRITONSERVER_ServerOptions *options,
                                                      unsigned int thread_count)
{
    return options_abi_set_number(options, "buffer-manager-thread-count", thread_count);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadThreadCount(TRITONSERVER_ServerOptions *options,
                                                  unsigned int thread_count)
{
    return options_abi_set_number(options, "model-load-thread-count", thread_count);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadRetryCount(TRITONSERVER_ServerOptions *options,
                                                 unsigned int retry_count)
{
    return options_abi_set_number(options, "model-load-retry-count", retry_count);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelNamespacing(TRITONSERVER_ServerOptions *options,
                                              bool enable_namespace)
{
    return set_bool(options, "model-namespacing", enable_namespace);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetEnablePeerAccess(TRITONSERVER_ServerOptions *options,
                                              bool enable_peer_access)
{
    return set_bool(options, "enable-peer-access", enable_peer_access);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                      uint64_t size)
{
    return options_abi_set_number(options, "pinned-memory-pool-byte-size", size);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetResponseCacheByteSize(TRITONSERVER_ServerOptions *options,
                                                   uint64_t size)
{
    return options_abi_set_number(options, "response-cache-byte-size", size);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCacheDirectory(TRITONSERVER_ServerOptions *options,
                                                                const char *cache_dir)
{
    return set_text(options, "cache-directory", cache_dir);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogFile(TRITONSERVER_ServerOptions *options,
                                                         const char *file)
{
    return set_text(options, "log-file", file);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogInfo(TRITONSERVER_ServerOptions *options,
                                                         bool log)
{
    return set_bool(options, "log-info", log);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogWarn(TRITONSERVER_ServerOptions *options,
                                                         bool log)
{
    return set_bool(options, "log-warning", log);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogError(TRITONSERVER_ServerOptions *options,
                                                          bool log)
{
    return set_bool(options, "log-error", log);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetMetrics(TRITONSERVER_ServerOptions *options,
                                                         bool metrics)
{
    return set_bool(options, "allow-metrics", metrics);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetGpuMetrics(TRITONSERVER_ServerOptions *options,
                                                            bool gpu_metrics)
{
    return set_bool(options, "allow-gpu-metrics", gpu_metrics);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCpuMetrics(TRITONSERVER_ServerOptions *options,
                                                            bool cpu_metrics)
{
    return set_bool(options, "allow-cpu-metrics", cpu_metrics);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMetricsInterval(TRITONSERVER_ServerOptions *options,
                                             uint64_t metrics_interval_ms)
{
    return options_abi_set_number(options, "metrics-interval-ms", metrics_interval_ms);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetBackendDirectory(TRITONSERVER_ServerOptions *options,
                                              const char *backend_dir)
{
    return set_text(options, "backend-directory", backend_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRepoAgentDirectory(TRITONSERVER_ServerOptions *options,
                                                const char *repoagent_dir)
{
    return set_text(options, "repoagent-directory", repoagent_dir);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelControlMode(TRITONSERVER_ServerOptions *options,
                                              TRITONSERVER_ModelControlMode mode)
{
    switch (mode) {
    case TRITONSERVER_MODEL_CONTROL_NONE:
        return set_text(options, "model-control-mode", "none");
    case TRITONSERVER_MODEL_CONTROL_POLL:
        return set_text(options, "model-control-mode", "poll");
    case TRITONSERVER_MODEL_CONTROL_EXPLICIT:
        return set_text(options, "model-control-mode", "explicit");
    }
    return handle_error(err_new(STATUS_INVALID_ARG, "unknown control mode '%d'", (int)mode));
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetRateLimiterMode(TRITONSERVER_ServerOptions *options,
                                             TRITONSERVER_RateLimitMode mode)
{
    switch (mode) {
    case TRITONSERVER_RATE_LIMIT_OFF:
        return set_text(options, "rate-limit", "off");
    case TRITONSERVER_RATE_LIMIT_EXEC_COUNT:
        return set_text(options, "rate-limit", "execution_count");
    }
    return handle_error(err_new(STATUS_INVALID_ARG, "unknown rate limit mode '%d'", (int)mode));
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsAddRateLimiterResource(TRITONSERVER_ServerOptions *options,
                                                 const char *resource_name,
                                                 const size_t resource_count, const int device)
{
    struct embed_options *o = embed_options_of(options);
    if (!o)
        return handle_invalid(type);
    if (!resource_name)
        return HANDLE_NULL("resource_name");
    if (device < 0)
        return handle_error(
            embed_options_setf(o, "rate-limit-resource", "%s:%zu", resource_name, resource_count));
    return handle_error(embed_options_setf(o, "rate-limit-resource", "%s:%zu:%d", resource_name,
                                           resource_count, device));
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(TRITONSERVER_ServerOptions *options,
                                                    int gpu_device, uint64_t size)
{
    struct embed_options *o = embed_options_of(options);
    return o ? handle_error(embed_options_setf(o, "cuda-memory-pool-byte-size", "%d:%" PRIu64,
                                               gpu_device, size))
             : handle_invalid(type);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(
    TRITONSERVER_ServerOptions *options, int gpu_device, size_t cuda_virtual_address_size)
{
    struct embed_options *o = embed_options_of(options);
    return o ? handle_error(embed_options_setf(o, "cuda-virtual-address-size", "%d:%zu", gpu_device,
                                               cuda_virtual_address_size))
             : handle_invalid(type);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetCacheConfig(TRITONSERVER_ServerOptions *options,
                                                             const char *cache_name,
                                                             const char *config_json)
{
    struct embed_options *o = embed_options_of(options);
    if (!o)
        return handle_invalid(type);
    if (!cache_name || !config_json)
        return HANDLE_NULL(cache_name ? "config_json" : "cache_name");
    struct strbuf value = STRBUF_INIT;
    strbuf_printf(&value, "%s,%s", cache_name, config_json);
    struct err *e = embed_options_set(o, "cache-config-json", strbuf_str(&value));
    strbuf_fini(&value);
    return handle_error(e);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(TRITONSERVER_ServerOptions *options,
                                                           double cc)
{
    struct embed_options *o = embed_options_of(options);
    return o ? handle_error(embed_options_setf(o, "min-supported-compute-capability", "%.1f", cc))
             : handle_invalid(type);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogFormat(TRITONSERVER_ServerOptions *options,
                                                           const TRITONSERVER_LogFormat format)
{
    switch (format) {
    case TRITONSERVER_LOG_DEFAULT:
        return set_text(options, "log-format", "default");
    case TRITONSERVER_LOG_ISO8601:
        return set_text(options, "log-format", "ISO8601");
    }
    return handle_error(err_new(STATUS_INVALID_ARG, "unknown log format '%d'", (int)format));
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetLogVerbose(TRITONSERVER_ServerOptions *options,
                                                            int level)
{
    return options_abi_set_number(options, "log-verbose", level > 0 ? (uint64_t)level : 0);
}

TRITONSERVER_Error *
TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(TRITONSERVER_ServerOptions *options,
                                                  const TRITONSERVER_InstanceGroupKind kind,
                                                  const int device_id, const double fraction)
{
    struct embed_options *o = embed_options_of(options);
    if (!o)
        return handle_invalid(type);
    if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU)
        return handle_error(err_new(STATUS_INVALID_ARG,
                                    "given device kind is not supported, got: %s",
                                    TRITONSERVER_InstanceGroupKindString(kind)));
    if (!(fraction >= 0.0 && fraction <= 1.0))
        return handle_error(
            err_new(STATUS_INVALID_ARG, "expected a fraction from 0.0 to 1.0, found %g", fraction));
    return handle_error(
        embed_options_setf(o, "model-load-gpu-limit", "%d:%g", device_id, fraction));
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetBackendConfig(TRITONSERVER_ServerOptions *options,
                                                               const char *backend_name,
                                                               const char *setting,
                                                               const char *value)
{
    return set_grouped(options, "backend-config", backend_name, setting, value);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetHostPolicy(TRITONSERVER_ServerOptions *options,
                                                            const char *policy_name,
                                                            const char *setting, const char *value)
{
    if (setting) {
        struct err *e = host_policy_check_key(setting);
        if (e)
            return handle_error(e);
    }
    return set_grouped(options, "host-policy", policy_name, setting, value);
}

TRITONSERVER_Error *TRITONSERVER_ServerOptionsSetMetricsConfig(TRITONSERVER_ServerOptions *options,
                                                               const char *name,
                                                               const char *setting,
                                                               const char *value)
{
    return set_grouped(options, "metrics-config", name, setting, value);
}
