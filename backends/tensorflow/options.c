#include "options.h"

#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/blog.h"
#include "messages.h"

enum { ON_CALLER = -1, JIT_OFF = -1, JIT_MOST = 2, SWITCHED_ON = 1, ONE_ITERATION = 1 };

/* The settings of TensorRT inside TensorFlow. */
struct tensorrt {
    const char *precision;
    int64_t segment, workspace, engines;
};

struct accelerators {
    bool wants_tensorrt, mixed_precision, gpu_io;
    struct tensorrt tensorrt;
};

struct threads {
    int64_t intra, inter; /* 0 = not said, or as many as processors */
    bool spread;          /* inter is 0 because the configuration says so */
    bool own;             /* of a session */
};

typedef TRITONSERVER_Error *parse_fn(const char *text, int64_t *ret_value);

static TRITONSERVER_Error *about_parameter(TRITONSERVER_Error *err, const char *model,
                                           const char *parameter)
{
    return berr_about(err, "model '%s', parameter '%s'", model, parameter);
}

static TRITONSERVER_Error *tensorflow_options_read_number(const char *model, yyjson_val *config,
                                                          const char *parameter, parse_fn *parse,
                                                          int64_t least, int64_t *ret_value)
{
    const char *text = bconfig_parameter(config, parameter);
    int64_t value = 0;
    if (!text)
        return NULL;
    TRITONSERVER_Error *err = parse(text, &value);
    if (!err && value >= least) {
        *ret_value = value;
        return NULL;
    }
    return err ? about_parameter(err, model, parameter)
               : berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                          "parameter '%s' must be %s number for TensorFlow model '%s'", parameter,
                          least ? "positive" : "non-negative", model);
}

static TRITONSERVER_Error *tensorflow_options_read_threads(const char *model, yyjson_val *config,
                                                           struct threads *threads)
{
    static const char own[] = "TF_USE_PER_SESSION_THREADS", inter[] = "TF_NUM_INTER_THREADS";
    const char *text = bconfig_parameter(config, own);
    TRITONSERVER_Error *err = tensorflow_options_read_number(
        model, config, "TF_NUM_INTRA_THREADS", bconfig_parse_threads, 0, &threads->intra);
    if (!err)
        err = tensorflow_options_read_number(model, config, inter, bconfig_parse_threads, INT32_MIN,
                                             &threads->inter);
    threads->spread = !threads->inter && bconfig_parameter(config, inter);
    if (!err && text && strcasecmp(text, "yes") != 0 && strcasecmp(text, "no") != 0)
        err = about_parameter(bconfig_parse_bool(text, &threads->own), model, own);
    else if (text)
        threads->own = strcasecmp(text, "yes") == 0;
    return err;
}

static void put_threads(const struct runtime *runtime, const struct threads *threads,
                        struct wire_out *session)
{
    /* Otherwise TensorFlow would use all processors of the machine, even those that the process
     * may not use, and would hand each operation to another thread while the instance's thread
     * waits: several times the CPU of a small model (docs/internals/tensorflow.md). */
    wire_put_number(session, INTRA_THREADS, threads->intra ? threads->intra : runtime->processors);
    int64_t usual = threads->spread ? runtime->processors : ON_CALLER;
    wire_put_number(session, INTER_THREADS, threads->inter ? threads->inter : usual);
    wire_put_number(session, OWN_THREADS, threads->own);
}

/* With a GPU a run has two parts, which TensorFlow starts on threads of its own even so; those of
 * the process are a single one if its first session is for the CPU. */
static void put_pool(const struct runtime *runtime, const struct threads *threads,
                     struct wire_out *session)
{
    if (!runtime->has_cuda || threads->inter || threads->own)
        return;
    size_t pool = wire_begin(session, THREAD_POOL);
    wire_put_number(session, POOL_THREADS, runtime->processors);
    wire_put_text(session, POOL_NAME, "nereid_devices");
    wire_end(session, pool);
}

static TRITONSERVER_Error *unknown_precision(const char *model, const char *text)
{
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unsupported precision mode '%s' is requested for model '%s': it can be FP32 "
                    "or FP16",
                    text ? text : "", model);
}

static TRITONSERVER_Error *read_tensorrt(const char *model, yyjson_val *parameters,
                                         struct tensorrt *tensorrt)
{
    size_t index, count;
    yyjson_val *key, *value;
    *tensorrt = (struct tensorrt){
        .precision = "FP32", .segment = 3, .workspace = INT64_C(1) << 30, .engines = 100};
    yyjson_obj_foreach(parameters, index, count, key, value)
    {
        const char *name = yyjson_get_str(key);
        int64_t number = bconfig_int(value, -1), *to = NULL;
        if (strcmp(name, "precision_mode") == 0) {
            tensorrt->precision = yyjson_get_str(value);
            if (!tensorrt->precision || (strcmp(tensorrt->precision, "FP32") != 0 &&
                                         strcmp(tensorrt->precision, "FP16") != 0))
                return unknown_precision(model, tensorrt->precision);
            continue;
        }
        if (strcmp(name, "minimum_segment_size") == 0)
            to = &tensorrt->segment;
        else if (strcmp(name, "max_workspace_size_bytes") == 0)
            to = &tensorrt->workspace;
        else if (strcmp(name, "max_cached_engines") == 0)
            to = &tensorrt->engines;
        if (!to)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "unknown parameter '%s' is provided for TensorRT Execution Accelerator "
                            "of model '%s'",
                            name, model);
        if (number < 0)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "model '%s', parameter '%s' of the TensorRT Execution Accelerator: "
                            "expected a number from 0 on",
                            model, name);
        *to = number;
    }
    return NULL;
}

static TRITONSERVER_Error *read_accelerator(const char *model, yyjson_val *entry,
                                            struct accelerators *accelerators)
{
    const char *name = yyjson_get_str(yyjson_obj_get(entry, "name"));
    if (name && strcmp(name, "tensorrt") == 0) {
        accelerators->wants_tensorrt = true;
        return read_tensorrt(model, yyjson_obj_get(entry, "parameters"), &accelerators->tensorrt);
    }
    if (name && strcmp(name, "auto_mixed_precision") == 0)
        accelerators->mixed_precision = true;
    else if (name && strcmp(name, "gpu_io") == 0)
        accelerators->gpu_io = true;
    else
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unknown Execution Accelerator '%s' is requested for model '%s'",
                        name ? name : "", model);
    return NULL;
}

static TRITONSERVER_Error *read_accelerators(const char *model, yyjson_val *config,
                                             struct accelerators *accelerators)
{
    size_t index, count;
    yyjson_val *entry;
    TRITONSERVER_Error *err = NULL;
    yyjson_val *listed =
        yyjson_obj_get(yyjson_obj_get(config, "optimization"), "execution_accelerators");
    if (yyjson_arr_size(yyjson_obj_get(listed, "cpu_execution_accelerator")) > 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "model '%s': CPU Execution Accelerator is not supported in TensorFlow "
                        "backend",
                        model);
    yyjson_arr_foreach(yyjson_obj_get(listed, "gpu_execution_accelerator"), index, count, entry)
    {
        if (!err)
            err = read_accelerator(model, entry, accelerators);
    }
    if (!err && accelerators->mixed_precision && accelerators->wants_tensorrt)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "model '%s': Auto mixed precision can not be set with TFTRT optimization",
                       model);
    return err;
}

static bool has_kind(yyjson_val *config, const char *wanted)
{
    size_t index, count;
    yyjson_val *group;
    yyjson_arr_foreach(yyjson_obj_get(config, "instance_group"), index, count, group)
    {
        const char *kind = yyjson_get_str(yyjson_obj_get(group, "kind"));
        if (kind && strcmp(kind, wanted) == 0)
            return true;
    }
    return false;
}

static int32_t place_of_first(yyjson_val *config)
{
    int32_t gpu = bconfig_first_gpu(config);
    if (gpu >= 0)
        return gpu;
    return has_kind(config, "KIND_MODEL") && !has_kind(config, "KIND_CPU") ? OPTIONS_BY_MODEL
                                                                           : OPTIONS_ON_CPU;
}

void options_tell(const char *model, yyjson_val *config, const struct options *options)
{
    bool elsewhere = has_kind(config, "KIND_GPU") || has_kind(config, "KIND_MODEL");
    bool on_cpu = !elsewhere || has_kind(config, "KIND_CPU");
    if (on_cpu && (options->wants_tensorrt || options->mixed_precision))
        blog_warn("model '%s': GPU Execution Accelerator will be ignored for model instance on "
                  "CPU",
                  model);
    if (has_kind(config, "KIND_GPU") && options->gpu_io)
        blog_warn("model '%s': 'gpu_io' changes nothing: inputs and outputs of TensorFlow are in "
                  "the memory of the host",
                  model);
}

static void put_parameter(struct wire_out *out, const char *name, uint32_t kind, int64_t number,
                          const char *text)
{
    size_t entry = wire_begin(out, OPTIMIZER_PARAMETERS);
    wire_put_text(out, MAP_KEY, name);
    size_t value = wire_begin(out, MAP_VALUE);
    if (text)
        wire_put_text(out, kind, text);
    else
        wire_put_number(out, kind, number);
    wire_end(out, value);
    wire_end(out, entry);
}

static void tensorflow_options_put_number(struct wire_out *out, const char *name, int64_t number)
{
    put_parameter(out, name, ATTR_NUMBER, number, NULL);
}

/* Around it constants are folded, since it leaves some that are used no more. */
static void put_tensorrt(struct wire_out *out, const struct tensorrt *tensorrt,
                         int64_t max_batch_size)
{
    wire_put_text(out, OPTIMIZERS, "constfold");
    wire_put_text(out, OPTIMIZERS, "layout");
    wire_put_text(out, OPTIMIZERS, "constfold");
    size_t optimizer = wire_begin(out, CUSTOM_OPTIMIZERS);
    wire_put_text(out, OPTIMIZER_NAME, "TensorRTOptimizer");
    put_parameter(out, "is_dynamic_op", ATTR_TRUTH, true, NULL);
    put_parameter(out, "precision_mode", ATTR_TEXT, 0, tensorrt->precision);
    tensorflow_options_put_number(out, "minimum_segment_size", tensorrt->segment);
    tensorflow_options_put_number(out, "max_batch_size", max_batch_size > 1 ? max_batch_size : 1);
    tensorflow_options_put_number(out, "max_workspace_size_bytes", tensorrt->workspace);
    tensorflow_options_put_number(out, "max_cached_engines", tensorrt->engines);
    wire_end(out, optimizer);
    size_t fold = wire_begin(out, CUSTOM_OPTIMIZERS);
    wire_put_text(out, OPTIMIZER_NAME, "constfold");
    wire_end(out, fold);
}

static void put_rewrites(const struct accelerators *accelerators, yyjson_val *config,
                         struct wire_out *out)
{
    if (!accelerators->wants_tensorrt && !accelerators->mixed_precision)
        return;
    size_t rewrite = wire_begin(out, REWRITE_OPTIONS);
    if (accelerators->wants_tensorrt)
        put_tensorrt(out, &accelerators->tensorrt,
                     bconfig_int(yyjson_obj_get(config, "max_batch_size"), 0));
    if (accelerators->mixed_precision)
        wire_put_number(out, MIXED_PRECISION, SWITCHED_ON);
    wire_put_number(out, ITERATIONS, ONE_ITERATION);
    wire_end(out, rewrite);
}

static void put_graph_options(const struct accelerators *accelerators, yyjson_val *config,
                              struct wire_out *session)
{
    yyjson_val *level =
        yyjson_obj_get(yyjson_obj_get(yyjson_obj_get(config, "optimization"), "graph"), "level");
    int64_t jit = bconfig_int(level, 0);
    jit = jit < 0 ? JIT_OFF : jit > JIT_MOST ? JIT_MOST : jit;
    size_t graph = wire_begin(session, GRAPH_OPTIONS);
    size_t optimizer = wire_begin(session, OPTIMIZER_OPTIONS);
    wire_put_number(session, JIT_LEVEL, jit);
    wire_put_number(session, JIT_ON_CPU, jit > 0);
    wire_end(session, optimizer);
    put_rewrites(accelerators, config, session);
    wire_end(session, graph);
}

static void put_devices(const struct runtime *runtime, struct wire_out *session)
{
    size_t gpu = wire_begin(session, GPU_OPTIONS);
    wire_put_double(session, GPU_FRACTION, runtime->gpu_memory_fraction);
    wire_put_number(session, GPU_GROWTH, runtime->gpu_memory_fraction == 0);
    wire_end(session, gpu);
    wire_put_number(session, SOFT_PLACEMENT, runtime->soft_placement);
}

static void put_no_gpus(struct wire_out *session)
{
    size_t entry = wire_begin(session, DEVICE_COUNT);
    wire_put_text(session, MAP_KEY, "GPU");
    wire_put_number(session, MAP_VALUE, 0);
    wire_end(session, entry);
}

static void put_sessions(const struct runtime *runtime, const struct threads *threads,
                         const struct accelerators *accelerators, yyjson_val *config,
                         struct options *options)
{
    static const struct accelerators none;
    put_threads(runtime, threads, &options->on_cpu);
    put_graph_options(&none, config, &options->on_cpu);
    put_devices(runtime, &options->on_cpu);
    put_no_gpus(&options->on_cpu);
    put_threads(runtime, threads, &options->on_devices);
    put_pool(runtime, threads, &options->on_devices);
    put_graph_options(accelerators, config, &options->on_devices);
    put_devices(runtime, &options->on_devices);
}

/* An empty text counts as missing. */
static const char *tensorflow_options_text(yyjson_val *config, const char *parameter,
                                           const char *usual)
{
    const char *text = bconfig_parameter(config, parameter);
    return text && *text ? text : usual;
}

TRITONSERVER_Error *options_read(const struct runtime *runtime, const char *model,
                                 yyjson_val *config, struct options *ret_options)
{
    struct accelerators accelerators = {0};
    struct threads threads = {0};
    struct options options = {
        .share_count = 1,
        .place = place_of_first(config),
        .tag = tensorflow_options_text(config, "TF_GRAPH_TAG", "serve"),
        .signature = tensorflow_options_text(config, "TF_SIGNATURE_DEF", NULL),
        .init_ops = tensorflow_options_text(config, "TF_INIT_OPS_FILE", NULL)};
    TRITONSERVER_Error *err = tensorflow_options_read_number(
        model, config, "MAX_SESSION_SHARE_COUNT", bconfig_parse_int, 1, &options.share_count);
    if (!err)
        err = tensorflow_options_read_threads(model, config, &threads);
    if (!err)
        err = read_accelerators(model, config, &accelerators);
    if (err)
        return err;
    options.wants_tensorrt = accelerators.wants_tensorrt;
    options.mixed_precision = accelerators.mixed_precision;
    options.gpu_io = accelerators.gpu_io;
    put_sessions(runtime, &threads, &accelerators, config, &options);
    if (options.on_cpu.failed || options.on_devices.failed) {
        options_free(&options);
        return berr_no_memory();
    }
    options_free(ret_options);
    *ret_options = options;
    return NULL;
}

void options_free(struct options *options)
{
    wire_free(&options->on_cpu);
    wire_free(&options->on_devices);
}
