#include "options.h"

#include <pthread.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/blog.h"
#include "../common/cpus.h"

/* A number of threads; PyTorch has one for the whole process. */
struct threads {
    const char *parameter;
    int count; /* the first model's value; 0 = not set */
};

static struct threads intra = {.parameter = "INTRA_OP_THREAD_COUNT"};
static struct threads inter = {.parameter = "INTER_OP_THREAD_COUNT"};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t settled = PTHREAD_ONCE_INIT;

static TRITONSERVER_Error *name_parameter(TRITONSERVER_Error *err, const char *model,
                                          const char *parameter)
{
    return berr_about(err, "model '%s', parameter '%s'", model, parameter);
}

/* ret_given: true if the parameter is set; may be NULL. */
static TRITONSERVER_Error *pytorch_options_read_bool(const char *model, yyjson_val *config,
                                                     const char *parameter, bool *ret_value,
                                                     bool *ret_given)
{
    const char *text = bconfig_parameter(config, parameter);
    if (ret_given)
        *ret_given = text != NULL;
    return text ? name_parameter(bconfig_parse_bool(text, ret_value), model, parameter) : NULL;
}

/* Reads a switch of the runtime; it is unchanged if the parameter is not set. */
static TRITONSERVER_Error *read_switch(const char *model, yyjson_val *config, const char *parameter,
                                       int *ret_value)
{
    bool value = false, given;
    TRITONSERVER_Error *err = pytorch_options_read_bool(model, config, parameter, &value, &given);
    *ret_value = given ? value : -1;
    return err;
}

static bool pytorch_options_set(struct threads *threads, int count)
{
    bool taken = false;
    pthread_mutex_lock(&lock);
    if (threads->count == 0 && threads == &intra)
        libtorch_set_threads(count);
    if (threads->count == 0 && (threads == &intra || libtorch_set_interop_threads(count)))
        threads->count = count;
    taken = threads->count == count;
    pthread_mutex_unlock(&lock);
    return taken;
}

static TRITONSERVER_Error *pytorch_options_read_threads(const char *model, yyjson_val *config,
                                                        const struct threads *threads,
                                                        int *ret_count)
{
    const char *text = bconfig_parameter(config, threads->parameter);
    int64_t count = 0;
    TRITONSERVER_Error *err =
        text ? name_parameter(bconfig_parse_threads(text, &count), model, threads->parameter)
             : NULL;
    *ret_count = count > 0 ? (int)count : 0;
    return err;
}

static void apply_threads(const char *model, struct threads *threads, int count)
{
    if (count > 0 && !pytorch_options_set(threads, count))
        blog_warn("model '%s': %s %d has no effect, since it counts for all models and was settled "
                  "before",
                  model, threads->parameter, count);
}

static TRITONSERVER_Error *read_without_cudnn(const char *model, yyjson_val *config,
                                              bool *ret_without)
{
    bool value = false, given;
    TRITONSERVER_Error *err =
        pytorch_options_read_bool(model, config, "DISABLE_CUDNN", &value, &given);
    if (!err && given && libtorch_gpu_absence())
        blog_info("model '%s': DISABLE_CUDNN has no effect, since models run on CPU", model);
    *ret_without = value && !libtorch_gpu_absence();
    return err;
}

static TRITONSERVER_Error *read_empties_cache(const char *model, yyjson_val *config,
                                              bool *ret_empties)
{
    bool value = false, given;
    TRITONSERVER_Error *err =
        pytorch_options_read_bool(model, config, "ENABLE_CACHE_CLEANING", &value, &given);
    if (!err && given && (libtorch_gpu_absence() || !libtorch_empty_cache()))
        blog_info("model '%s': ENABLE_CACHE_CLEANING has no effect, since %s", model,
                  libtorch_gpu_absence() ? "models run on CPU"
                                         : "this version of PyTorch cannot be asked to");
    *ret_empties = value && !libtorch_gpu_absence();
    return err;
}

static TRITONSERVER_Error *read_without_effect(const char *model, yyjson_val *config)
{
    bool value, given;
    TRITONSERVER_Error *err =
        pytorch_options_read_bool(model, config, "ENABLE_NVFUSER", &value, &given);
    if (!err && given)
        blog_info("model '%s': ENABLE_NVFUSER has no effect, since PyTorch has no such "
                  "fuser any more",
                  model);
    return err;
}

/* Parts of a configuration that other backends read. */
static void warn_of_parts(const char *model, yyjson_val *config)
{
    yyjson_val *optimization = yyjson_obj_get(config, "optimization");
    yyjson_val *accelerators = yyjson_obj_get(optimization, "execution_accelerators");
    yyjson_val *operations = yyjson_obj_get(config, "model_operations");
    yyjson_val *level = yyjson_obj_get(yyjson_obj_get(optimization, "graph"), "level");
    static const char on_cpu[] = "cpu_execution_accelerator",
                      on_gpu[] = "gpu_execution_accelerator";
    const struct {
        const char *name;
        bool given;
    } parts[] = {
        {"model_operations",
         yyjson_arr_size(yyjson_obj_get(operations, "op_library_filename")) > 0},
        {"optimization.graph.level", bconfig_int(level, 0) != 0},
        {on_cpu, yyjson_arr_size(yyjson_obj_get(accelerators, on_cpu)) > 0},
        {on_gpu, yyjson_arr_size(yyjson_obj_get(accelerators, on_gpu)) > 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].given)
            blog_warn("model '%s': %s has no effect in the backend 'pytorch'", model,
                      parts[i].name);
}

void options_begin(void)
{
    libtorch_set_threads(cpus_usable());
}

TRITONSERVER_Error *options_read(const char *model, yyjson_val *config, struct options *ret_options)
{
    bool plain = false;
    struct options options = {.mode = {.inference = true}};
    struct libtorch_mode *mode = &options.mode;
    TRITONSERVER_Error *err =
        pytorch_options_read_bool(model, config, "DISABLE_OPTIMIZED_EXECUTION", &plain, NULL);
    mode->optimizes = !plain;
    if (!err)
        err = pytorch_options_read_bool(model, config, "INFERENCE_MODE", &mode->inference, NULL);
    if (!err)
        err = pytorch_options_read_bool(model, config, "ENABLE_WEIGHT_SHARING",
                                        &options.shares_weights, NULL);
    if (!err)
        err = read_switch(model, config, "ENABLE_JIT_PROFILING", &mode->profiling);
    if (!err)
        err = read_switch(model, config, "ENABLE_JIT_EXECUTOR", &mode->executor);
    if (!err)
        err = read_switch(model, config, "ENABLE_TENSOR_FUSER", &mode->fuser);
    if (!err)
        err = read_without_cudnn(model, config, &options.without_cudnn);
    if (!err)
        err = read_empties_cache(model, config, &options.empties_cache);
    if (!err)
        err = read_without_effect(model, config);
    if (!err)
        err = pytorch_options_read_threads(model, config, &intra, &options.intra_threads);
    if (!err)
        err = pytorch_options_read_threads(model, config, &inter, &options.inter_threads);
    if (!err)
        warn_of_parts(model, config);
    *ret_options = options;
    return err;
}

void options_apply(const char *model, const struct options *options)
{
    if (options->without_cudnn)
        libtorch_without_cudnn();
    apply_threads(model, &intra, options->intra_threads);
    apply_threads(model, &inter, options->inter_threads);
}

static void pytorch_options_settle(void)
{
    pytorch_options_set(&inter, cpus_usable());
}

void options_settle(void)
{
    pthread_once(&settled, pytorch_options_settle);
}
