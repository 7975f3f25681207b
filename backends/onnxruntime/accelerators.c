#include "accelerators.h"

#include <stdio.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"

/* Settings of one provider, as ONNX Runtime takes them. The texts are borrowed. */
enum { SETTINGS_MOST = 48 };

struct settings {
    const char *accelerator; /* its name, for errors */
    size_t count;
    const char *keys[SETTINGS_MOST], *values[SETTINGS_MOST];
};

/* A later value of a key takes the place of the earlier one. */
static TRITONSERVER_Error *settings_put(struct settings *settings, const char *key,
                                        const char *value)
{
    size_t at = 0;
    while (at < settings->count && strcmp(settings->keys[at], key) != 0)
        at++;
    if (at == SETTINGS_MOST)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "Execution Accelerator '%s' takes at most %d parameters",
                        settings->accelerator, SETTINGS_MOST);
    settings->keys[at] = key;
    settings->values[at] = value;
    settings->count += at == settings->count;
    return NULL;
}

/* Takes the parameters of an accelerator, one after the other, until an error. */
static TRITONSERVER_Error *settings_put_each(struct settings *settings, yyjson_val *parameters,
                                             TRITONSERVER_Error *(*put)(struct settings *,
                                                                        const char *, const char *))
{
    TRITONSERVER_Error *err = NULL;
    size_t index, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(parameters, index, count, key, value)
    {
        if (!err)
            err = put(settings, yyjson_get_str(key), yyjson_get_str(value));
    }
    return err;
}

/* Parameters that name files of the server or addresses in its memory are refused: a configuration
 * may come over the network or from a store. */
static TRITONSERVER_Error *leads_out(const char *accelerator, const char *key)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "Execution Accelerator '%s': the parameter '%s' leads out of the model's "
                    "directory and is not taken; remove it",
                    accelerator, key);
}

/* What ONNX Runtime logged says more than its error. Frees `err`, which may be NULL. */
static TRITONSERVER_Error *does_not_start(const struct settings *settings, TRITONSERVER_Error *err)
{
    if (!err)
        return NULL;
    const char *logged = ort_last_error();
    TRITONSERVER_Error *told =
        berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                 "Execution Accelerator '%s' does not start with these parameters: %s",
                 settings->accelerator, *logged ? logged : TRITONSERVER_ErrorMessage(err));
    berr_drop(err);
    return told;
}

static TRITONSERVER_Error *check_provider(const struct ort *ort, const char *provider,
                                          const char *accelerator)
{
    bool has = false;
    TRITONSERVER_Error *err = ort_has_provider(ort, provider, &has);
    if (err || has)
        return err;
    return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                    "Execution Accelerator '%s' is requested, but this ONNX Runtime was built "
                    "without it",
                    accelerator);
}

static TRITONSERVER_Error *add_openvino_parameter(struct settings *settings, const char *key,
                                                  const char *value)
{
    static const char *const refused[] = {"cache_dir", "load_config", "context", NULL};
    int64_t threads;
    if (bconfig_is_listed(refused, key))
        return leads_out("openvino", key);
    TRITONSERVER_Error *err =
        strcmp(key, "num_of_threads") == 0 ? bconfig_parse_threads(value, &threads) : NULL;
    return err ? berr_about(err, "Execution Accelerator 'openvino': num_of_threads")
               : settings_put(settings, key, value);
}

/* Uses the same precision as the runtime without it, and as many threads, unless the
 * accelerator's parameters say otherwise. */
static TRITONSERVER_Error *add_openvino(const struct ort *ort, yyjson_val *parameters,
                                        OrtSessionOptions *options)
{
    char threads[16];
    snprintf(threads, sizeof threads, "%d", ort->processors);
    struct settings settings = {.accelerator = "openvino",
                                .count = 3,
                                .keys = {"device_type", "precision", "num_of_threads"},
                                .values = {"CPU", "FP32", threads}};
    TRITONSERVER_Error *err = check_provider(ort, "OpenVINOExecutionProvider", "openvino");
    if (!err)
        err = settings_put_each(&settings, parameters, add_openvino_parameter);
    if (err)
        return err;
    err = ort_err(ort->api, ort->api->SessionOptionsAppendExecutionProvider_OpenVINO_V2(
                                options, settings.keys, settings.values, settings.count));
    return does_not_start(&settings, err);
}

static TRITONSERVER_Error *add_precision(struct settings *settings, const char *precision)
{
    if (strcmp(precision, "FP32") == 0)
        return NULL;
    if (strcmp(precision, "FP16") == 0)
        return settings_put(settings, "trt_fp16_enable", "1");
    if (strcmp(precision, "INT8") == 0)
        return settings_put(settings, "trt_int8_enable", "1");
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "unsupported precision mode '%s' is requested",
                    precision);
}

/* Those that Triton's backend takes, some under names of its own, but for those that lead to
 * files. ONNX Runtime has others, some of them addresses: what is not listed is unknown. */
static TRITONSERVER_Error *add_tensorrt_parameter(struct settings *settings, const char *key,
                                                  const char *value)
{
    static const char *const renamed[][2] = {
        {"max_workspace_size_bytes", "trt_max_workspace_size"},
        {"int8_use_native_calibration_table", "trt_int8_use_native_calibration_table"},
    };
    static const char *const refused[] = {
        "int8_calibration_table_name", "trt_int8_calibration_table_name",
        "trt_engine_cache_enable",     "trt_engine_cache_path",
        "trt_engine_cache_prefix",     "trt_timing_cache_enable",
        "trt_timing_cache_path",       "trt_dump_subgraphs",
        "trt_extra_plugin_lib_paths",  "trt_ep_context_file_path",
        "trt_dump_ep_context_model",   NULL};
    static const char *const taken[] = {"trt_max_partition_iterations",
                                        "trt_min_subgraph_size",
                                        "trt_max_workspace_size",
                                        "trt_fp16_enable",
                                        "trt_bf16_enable",
                                        "trt_int8_enable",
                                        "trt_int8_use_native_calibration_table",
                                        "trt_dla_enable",
                                        "trt_dla_core",
                                        "trt_force_sequential_engine_build",
                                        "trt_context_memory_sharing_enable",
                                        "trt_layer_norm_fp32_fallback",
                                        "trt_detailed_build_log",
                                        "trt_build_heuristics_enable",
                                        "trt_sparsity_enable",
                                        "trt_builder_optimization_level",
                                        "trt_auxiliary_streams",
                                        "trt_tactic_sources",
                                        "trt_profile_min_shapes",
                                        "trt_profile_max_shapes",
                                        "trt_profile_opt_shapes",
                                        NULL};
    if (bconfig_is_listed(refused, key))
        return leads_out("tensorrt", key);
    if (strcmp(key, "precision_mode") == 0)
        return add_precision(settings, value);
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(key, renamed[i][0]) == 0)
            return settings_put(settings, renamed[i][1], value);
    if (bconfig_is_listed(taken, key))
        return settings_put(settings, key, value);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unknown parameter '%s' is provided for TensorRT Execution Accelerator", key);
}

static TRITONSERVER_Error *add_tensorrt(const struct ort *ort, yyjson_val *parameters,
                                        const struct accelerators_gpu *gpu,
                                        OrtSessionOptions *options)
{
    const OrtApi *api = ort->api;
    char device[16];
    snprintf(device, sizeof device, "%d", (int)gpu->device);
    struct settings settings = {
        .accelerator = "tensorrt", .count = 1, .keys = {"device_id"}, .values = {device}};
    OrtTensorRTProviderOptionsV2 *provider = NULL;
    TRITONSERVER_Error *err = settings_put_each(&settings, parameters, add_tensorrt_parameter);
    if (!err)
        err = check_provider(ort, "TensorrtExecutionProvider", "tensorrt");
    if (err)
        return err;
    OrtStatus *status = api->CreateTensorRTProviderOptions(&provider);
    if (!status)
        status = api->UpdateTensorRTProviderOptions(provider, settings.keys, settings.values,
                                                    settings.count);
    if (!status)
        status = api->UpdateTensorRTProviderOptionsWithValue(provider, "user_compute_stream",
                                                             gpu->stream);
    if (!status)
        status = api->SessionOptionsAppendExecutionProvider_TensorRT_V2(options, provider);
    if (provider)
        api->ReleaseTensorRTProviderOptions(provider);
    return does_not_start(&settings, ort_err(api, status));
}

/* Adds a parameter of the model that Triton's backend takes: its numbers stand for names. */
static TRITONSERVER_Error *add_numbered(struct settings *settings, yyjson_val *config,
                                        const char *key, const char *const *names, int64_t count)
{
    const char *text = bconfig_parameter(config, key);
    int64_t number = 0;
    TRITONSERVER_Error *err =
        text ? berr_about(bconfig_parse_int(text, &number), "parameter '%s'", key) : NULL;
    if (err || !text)
        return err;
    if (number < 0 || number >= count)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "the parameter '%s' is a number from 0 to %d, not '%s'", key,
                        (int)count - 1, text);
    return settings_put(settings, key, names[number]);
}

static TRITONSERVER_Error *add_cuda_parameters(struct settings *settings, yyjson_val *config)
{
    static const char *const searches[] = {"EXHAUSTIVE", "HEURISTIC", "DEFAULT"};
    static const char *const extends[] = {"kNextPowerOfTwo", "kSameAsRequested"};
    static const char *const switched[] = {"0", "1"};
    const char *limit = bconfig_parameter(config, "gpu_mem_limit");
    TRITONSERVER_Error *err = add_numbered(settings, config, "cudnn_conv_algo_search", searches, 3);
    if (!err)
        err = add_numbered(settings, config, "arena_extend_strategy", extends, 2);
    if (!err)
        err = add_numbered(settings, config, "do_copy_in_default_stream", switched, 2);
    return err || !limit ? err : settings_put(settings, "gpu_mem_limit", limit);
}

/* A graph of CUDA would need tensors at the same place in every run. */
static TRITONSERVER_Error *add_cuda_setting(struct settings *settings, const char *key,
                                            const char *value)
{
    static const char *const refused[] = {"user_compute_stream",      "has_user_compute_stream",
                                          "gpu_external_alloc",       "gpu_external_free",
                                          "gpu_external_empty_cache", NULL};
    static const char *const taken[] = {"gpu_mem_limit",
                                        "arena_extend_strategy",
                                        "cudnn_conv_algo_search",
                                        "cudnn_conv_use_max_workspace",
                                        "cudnn_conv1d_pad_to_nc1d",
                                        "do_copy_in_default_stream",
                                        "use_ep_level_unified_stream",
                                        "enable_skip_layer_norm_strict_mode",
                                        "prefer_nhwc",
                                        "use_tf32",
                                        "fuse_conv_bias",
                                        "sdpa_kernel",
                                        "tunable_op_enable",
                                        "tunable_op_tuning_enable",
                                        "tunable_op_max_tuning_duration_ms",
                                        NULL};
    if (bconfig_is_listed(refused, key))
        return leads_out("cuda", key);
    if (strcmp(key, "enable_cuda_graph") == 0)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "Execution Accelerator 'cuda': 'enable_cuda_graph' is not served, because "
                        "tensors lie elsewhere in each run; remove it");
    if (bconfig_is_listed(taken, key))
        return settings_put(settings, key, value);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unknown parameter '%s' is provided for CUDA Execution Accelerator", key);
}

static TRITONSERVER_Error *add_cuda(const struct ort *ort, struct settings *settings,
                                    const struct accelerators_gpu *gpu, OrtSessionOptions *options)
{
    const OrtApi *api = ort->api;
    OrtCUDAProviderOptionsV2 *provider = NULL;
    char device[16];
    snprintf(device, sizeof device, "%d", (int)gpu->device);
    TRITONSERVER_Error *err = settings_put(settings, "device_id", device);
    if (err)
        return err;
    OrtStatus *status = api->CreateCUDAProviderOptions(&provider);
    if (!status)
        status = api->UpdateCUDAProviderOptions(provider, settings->keys, settings->values,
                                                settings->count);
    if (!status)
        status =
            api->UpdateCUDAProviderOptionsWithValue(provider, "user_compute_stream", gpu->stream);
    if (!status)
        status = api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, provider);
    if (provider)
        api->ReleaseCUDAProviderOptions(provider);
    return does_not_start(settings, ort_err(api, status));
}

static yyjson_val *accelerators_of(yyjson_val *config, const char *kind)
{
    yyjson_val *optimization = yyjson_obj_get(config, "optimization");
    return yyjson_obj_get(yyjson_obj_get(optimization, "execution_accelerators"), kind);
}

static TRITONSERVER_Error *unknown_accelerator(const char *name)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unknown Execution Accelerator '%s' is requested", name ? name : "");
}

static TRITONSERVER_Error *add_for_gpu(const struct ort *ort, yyjson_val *config,
                                       const struct accelerators_gpu *gpu,
                                       OrtSessionOptions *options)
{
    struct settings cuda = {.accelerator = "cuda"};
    size_t index, count;
    yyjson_val *accelerator;
    TRITONSERVER_Error *err = add_cuda_parameters(&cuda, config);
    yyjson_arr_foreach(accelerators_of(config, "gpu_execution_accelerator"), index, count,
                       accelerator)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(accelerator, "name"));
        yyjson_val *parameters = yyjson_obj_get(accelerator, "parameters");
        if (err)
            return err;
        if (name && strcmp(name, "tensorrt") == 0)
            err = add_tensorrt(ort, parameters, gpu, options);
        else if (name && strcmp(name, "cuda") == 0)
            err = settings_put_each(&cuda, parameters, add_cuda_setting);
        else
            err = unknown_accelerator(name);
    }
    return err ? err : add_cuda(ort, &cuda, gpu, options);
}

static TRITONSERVER_Error *add_for_cpu(const struct ort *ort, yyjson_val *config,
                                       OrtSessionOptions *options)
{
    size_t index, count;
    yyjson_val *accelerator;
    yyjson_arr_foreach(accelerators_of(config, "cpu_execution_accelerator"), index, count,
                       accelerator)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(accelerator, "name"));
        if (!name || strcmp(name, "openvino") != 0)
            return unknown_accelerator(name);
        TRITONSERVER_Error *err =
            add_openvino(ort, yyjson_obj_get(accelerator, "parameters"), options);
        if (err)
            return err;
    }
    return NULL;
}

TRITONSERVER_Error *accelerators_add(const struct ort *ort, yyjson_val *config,
                                     const struct accelerators_gpu *gpu, OrtSessionOptions *options)
{
    *ort_last_error() = '\0';
    return gpu ? add_for_gpu(ort, config, gpu, options) : add_for_cpu(ort, config, options);
}

bool accelerators_want_openvino(yyjson_val *config)
{
    size_t index, count;
    yyjson_val *accelerator;
    yyjson_arr_foreach(accelerators_of(config, "cpu_execution_accelerator"), index, count,
                       accelerator)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(accelerator, "name"));
        if (name && strcmp(name, "openvino") == 0)
            return true;
    }
    return false;
}
