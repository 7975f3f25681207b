#include "options.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/blog.h"

/* What the reference's backend knows, and what it is here whatever is asked for. */
static const struct {
    const char *name, *as_here, *why;
} fixed[] = {
    {"execution-policy", "BLOCKING", "each instance executes on a thread of its own"},
    {"coalesce-request-input", "false",
     "the inputs of a batch are copied one request after the other"},
};

static void warn_of(const char *whose, const char *name, const char *as_here, const char *given,
                    const char *why)
{
    blog_warn("%s: '%s' is %s here, not %s: %s", whose, name, as_here, given, why);
}

static void warn_of_fixed(const char *whose, yyjson_val *among,
                          const char *(*find)(yyjson_val *among, const char *name))
{
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const char *given = find(among, fixed[i].name);
        if (given && strcasecmp(given, fixed[i].as_here) != 0)
            warn_of(whose, fixed[i].name, fixed[i].as_here, given, fixed[i].why);
    }
}

static TRITONSERVER_Error *tensorrt_options_refuse(const char *model, const char *field)
{
    return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                    "unable to load model '%s': the backend 'tensorrt' does not serve '%s'", model,
                    field);
}

/* What would change results or memory if it were left out. */
static TRITONSERVER_Error *refuse_unserved(const char *model, yyjson_val *config)
{
    const char *multi = bconfig_parameter(config, "enable_multi_device");
    yyjson_val *input;
    size_t index, count;
    if (multi && (strcasecmp(multi, "true") == 0 || strcmp(multi, "1") == 0))
        return tensorrt_options_refuse(model, "enable_multi_device");
    if (yyjson_arr_size(yyjson_obj_get(config, "batch_input")) > 0)
        return tensorrt_options_refuse(model, "batch_input");
    if (yyjson_arr_size(yyjson_obj_get(config, "batch_output")) > 0)
        return tensorrt_options_refuse(model, "batch_output");
    yyjson_arr_foreach(yyjson_obj_get(config, "input"), index, count, input)
    {
        if (yyjson_get_bool(yyjson_obj_get(input, "allow_ragged_batch")))
            return tensorrt_options_refuse(model, "allow_ragged_batch");
    }
    return NULL;
}

static TRITONSERVER_Error *read_strategy(const char *model, yyjson_val *config, bool *ret_grows)
{
    const char *given = bconfig_parameter(config, "execution_context_allocation_strategy");
    *ret_grows = given && strcmp(given, "ON_PROFILE_CHANGE") == 0;
    if (!given || *ret_grows || strcmp(given, "STATIC") == 0)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "Invalid value for 'execution_context_allocation_strategy': '%s' for model "
                    "instance '%s'. Supported values are 'STATIC' and 'ON_PROFILE_CHANGE'.",
                    given, model);
}

TRITONSERVER_Error *options_read(const char *model, yyjson_val *config, struct options *ret)
{
    yyjson_val *optimization = yyjson_obj_get(config, "optimization");
    yyjson_val *cuda = yyjson_obj_get(optimization, "cuda");
    const char *priority = yyjson_get_str(yyjson_obj_get(optimization, "priority"));
    *ret = (struct options){.priority = BCUDA_USUAL,
                            .graphs = yyjson_get_bool(yyjson_obj_get(cuda, "graphs")),
                            .busy = yyjson_get_bool(yyjson_obj_get(cuda, "busy_wait_events"))};
    if (priority && strcmp(priority, "PRIORITY_MAX") == 0)
        ret->priority = BCUDA_FIRST;
    else if (priority && strcmp(priority, "PRIORITY_MIN") == 0)
        ret->priority = BCUDA_LAST;
    TRITONSERVER_Error *err = refuse_unserved(model, config);
    if (!err) {
        char whose[256];
        snprintf(whose, sizeof whose, "model '%s'", model);
        warn_of_fixed(whose, config, bconfig_parameter);
        if (yyjson_get_bool(yyjson_obj_get(cuda, "output_copy_stream")))
            warn_of(whose, "output_copy_stream", "false", "true",
                    "an instance copies its outputs before it executes again");
    }
    return err ? err : read_strategy(model, config, &ret->grows);
}

/* Plug-ins register themselves when they are opened; they are never closed. */
static TRITONSERVER_Error *open_plugins(const char *names)
{
    char *list = strdup(names), *rest = NULL;
    if (!list)
        return berr_no_memory();
    for (char *name = strtok_r(list, ";", &rest); name; name = strtok_r(NULL, ";", &rest))
        if (!dlopen(name, RTLD_NOW | RTLD_GLOBAL))
            berr_log(berr_new(TRITONSERVER_ERROR_NOT_FOUND, "%s", dlerror()),
                     "unable to load a TensorRT plug-in");
    free(list);
    return NULL;
}

static const char *of_cmdline(yyjson_val *cmdline, const char *name)
{
    return yyjson_get_str(yyjson_obj_get(cmdline, name));
}

TRITONSERVER_Error *options_of_backend(yyjson_val *cmdline, struct runtime *ret)
{
    const char *compatible = of_cmdline(cmdline, "version-compatible");
    const char *plugins = of_cmdline(cmdline, "plugins");
    *ret = (struct runtime){0};
    warn_of_fixed("backend 'tensorrt'", cmdline, of_cmdline);
    TRITONSERVER_Error *why = compatible ? bconfig_parse_bool(compatible, &ret->host_code) : NULL;
    if (why) {
        berr_drop(why);
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "backend 'tensorrt': version-compatible is true or false, not '%s'",
                        compatible);
    }
    return plugins ? open_plugins(plugins) : NULL;
}
