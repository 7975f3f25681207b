#include "options.h"

#include <stdio.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "accelerators.h"

static TRITONSERVER_Error *set_graph_level(const OrtApi *api, yyjson_val *config,
                                           OrtSessionOptions *options)
{
    yyjson_val *graph = yyjson_obj_get(yyjson_obj_get(config, "optimization"), "graph");
    GraphOptimizationLevel level;
    switch (bconfig_int(yyjson_obj_get(graph, "level"), 0)) {
    case -1:
        level = ORT_ENABLE_BASIC;
        break;
    case 1:
        level = ORT_ENABLE_EXTENDED;
        break;
    case 2:
        level = ORT_DISABLE_ALL;
        break;
    default:
        level = ORT_ENABLE_ALL;
        break;
    }
    return ort_err(api, api->SetSessionGraphOptimizationLevel(options, level));
}

static TRITONSERVER_Error *onnxruntime_options_about(TRITONSERVER_Error *err, yyjson_val *config,
                                                     const char *parameter)
{
    return berr_about(err, "model '%s', parameter '%s'",
                      yyjson_get_str(yyjson_obj_get(config, "name")), parameter);
}

static TRITONSERVER_Error *onnxruntime_options_read_threads(yyjson_val *config, const char *key,
                                                            int64_t *ret_count)
{
    const char *text = bconfig_parameter(config, key);
    return text ? onnxruntime_options_about(bconfig_parse_threads(text, ret_count), config, key)
                : NULL;
}

/* Idle threads sleep, as those of the shared pool do, unless the configuration says otherwise. */
static OrtStatus *let_sleep(const OrtApi *api, yyjson_val *config, OrtSessionOptions *options)
{
    static const char *const keys[] = {"session.intra_op.allow_spinning",
                                       "session.inter_op.allow_spinning"};
    OrtStatus *status = NULL;
    for (size_t i = 0; !status && i < sizeof keys / sizeof *keys; i++)
        if (!bconfig_parameter(config, keys[i]))
            status = api->AddSessionConfigEntry(options, keys[i], "0");
    return status;
}

/* 0 processors means "not given" to ONNX Runtime, which would then ignore the CPU quota. */
static TRITONSERVER_Error *set_own_threads(const struct ort *ort, yyjson_val *config,
                                           OrtSessionOptions *options, int64_t intra, int64_t inter)
{
    const OrtApi *api = ort->api;
    OrtStatus *status =
        api->SetIntraOpNumThreads(options, intra > 0 ? (int)intra : ort->processors);
    if (!status)
        status = api->SetInterOpNumThreads(options, inter > 0 ? (int)inter : ort->processors);
    if (!status)
        status = let_sleep(api, config, options);
    return ort_err(api, status);
}

static TRITONSERVER_Error *set_threads(const struct ort *ort, yyjson_val *config,
                                       OrtSessionOptions *options)
{
    const OrtApi *api = ort->api;
    int64_t intra = 0, inter = 0, mode = 0;
    const char *mode_text = bconfig_parameter(config, "execution_mode");
    TRITONSERVER_Error *err =
        onnxruntime_options_read_threads(config, "intra_op_thread_count", &intra);
    if (!err)
        err = onnxruntime_options_read_threads(config, "inter_op_thread_count", &inter);
    if (!err && mode_text)
        err = onnxruntime_options_about(bconfig_parse_int(mode_text, &mode), config,
                                        "execution_mode");
    if (!err && mode != 0 && mode != 1)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "Invalid configuration value provided. Expected values for execution_mode "
                       "are 0 or 1 but got %lld .",
                       (long long)mode);
    if (!err)
        err = ort_err(api,
                      api->SetSessionExecutionMode(options, mode ? ORT_PARALLEL : ORT_SEQUENTIAL));
    if (err)
        return err;
    bool wants_own = intra > 0 || inter > 0 || mode == 1;
    bool shares = ort->settings.pool_given ? ort->settings.pool_enabled : !wants_own;
    return shares ? ort_err(api, api->DisablePerSessionThreads(options))
                  : set_own_threads(ort, config, options, intra, inter);
}

static TRITONSERVER_Error *onnxruntime_options_set_memory(const OrtApi *api, yyjson_val *config,
                                                          OrtSessionOptions *options)
{
    const char *arena = bconfig_parameter(config, "enable_mem_arena");
    const char *pattern = bconfig_parameter(config, "enable_mem_pattern");
    TRITONSERVER_Error *err = NULL;
    bool on = true;
    if (arena)
        err = onnxruntime_options_about(bconfig_parse_bool(arena, &on), config, "enable_mem_arena");
    if (arena && !err)
        err = ort_err(api, on ? api->EnableCpuMemArena(options) : api->DisableCpuMemArena(options));
    if (pattern && !err)
        err = onnxruntime_options_about(bconfig_parse_bool(pattern, &on), config,
                                        "enable_mem_pattern");
    if (pattern && !err)
        err = ort_err(api, on ? api->EnableMemPattern(options) : api->DisableMemPattern(options));
    return err;
}

/* Whether a parameter makes ONNX Runtime read or write files of the server, or use memory that is
 * not its own. What a newer one may know is recognised by its name. */
static bool options_leads_out(const char *name)
{
    static const char *const words[] = {"file",  "path",     "folder", "_dir",
                                        "_root", "resource", "debug",  "profil"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

/* Calls `add` for every parameter whose name begins with `prefix`. */
static TRITONSERVER_Error *
add_entries(const OrtApi *api, yyjson_val *config, const char *prefix, void *options,
            OrtStatus *(*add)(const OrtApi *, void *, const char *, const char *))
{
    size_t index, count;
    yyjson_val *key, *parameter;
    yyjson_val *parameters = yyjson_obj_get(config, "parameters");
    yyjson_obj_foreach(parameters, index, count, key, parameter)
    {
        const char *name = yyjson_get_str(key);
        const char *value = yyjson_get_str(yyjson_obj_get(parameter, "string_value"));
        if (!value || strncmp(name, prefix, strlen(prefix)) != 0)
            continue;
        if (options_leads_out(name))
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "the parameter '%s' leads out of the model's directory and is not "
                            "taken; remove it",
                            name);
        TRITONSERVER_Error *err = ort_err(api, add(api, options, name, value));
        if (err)
            return err;
    }
    return NULL;
}

static OrtStatus *add_session_entry(const OrtApi *api, void *options, const char *name,
                                    const char *value)
{
    return api->AddSessionConfigEntry(options, name, value);
}

static OrtStatus *add_run_entry(const OrtApi *api, void *options, const char *name,
                                const char *value)
{
    return api->AddRunConfigEntry(options, name, value);
}

static TRITONSERVER_Error *add_operators(const OrtApi *api, yyjson_val *config,
                                         OrtSessionOptions *options)
{
    yyjson_val *operations = yyjson_obj_get(config, "model_operations");
    yyjson_val *files = yyjson_obj_get(operations, "op_library_filename");
    size_t index, count;
    yyjson_val *file;
    yyjson_arr_foreach(files, index, count, file)
    {
        TRITONSERVER_Error *err =
            ort_err(api, api->RegisterCustomOpsLibrary_V2(options, yyjson_get_str(file)));
        if (err)
            return err;
    }
    return NULL;
}

TRITONSERVER_Error *options_new(const struct ort *ort, yyjson_val *config,
                                const struct accelerators_gpu *gpu, OrtSessionOptions **ret_options)
{
    const OrtApi *api = ort->api;
    OrtSessionOptions *options = NULL;
    TRITONSERVER_Error *err = ort_err(api, api->CreateSessionOptions(&options));
    if (err)
        return err;
    err = set_graph_level(api, config, options);
    if (!err)
        err = set_threads(ort, config, options);
    if (!err)
        err = onnxruntime_options_set_memory(api, config, options);
    if (!err)
        err = add_entries(api, config, "session.", options, add_session_entry);
    if (!err)
        err = accelerators_add(ort, config, gpu, options);
    if (!err)
        err = add_operators(api, config, options);
    if (err) {
        api->ReleaseSessionOptions(options);
        return err;
    }
    *ret_options = options;
    return NULL;
}

TRITONSERVER_Error *options_run_new(const struct ort *ort, yyjson_val *config,
                                    OrtRunOptions **ret_options)
{
    const OrtApi *api = ort->api;
    OrtRunOptions *options = NULL;
    TRITONSERVER_Error *err = ort_err(api, api->CreateRunOptions(&options));
    if (err)
        return err;
    err = add_entries(api, config, "memory.", options, add_run_entry);
    if (err) {
        api->ReleaseRunOptions(options);
        return err;
    }
    *ret_options = options;
    return NULL;
}
