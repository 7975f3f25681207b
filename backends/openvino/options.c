#include "options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"

/* The values of a parameter: a whole number, or one of the words, which are passed on unchanged
 * except for bf16. */
struct rule {
    const char *parameter;
    const char *property;
    bool number;
    const char *words[4];
    const char *expected;
};

static const struct rule rules[] = {
    {"INFERENCE_NUM_THREADS", "INFERENCE_NUM_THREADS", true, {NULL}, "a non-negative number"},
    {"COMPILATION_NUM_THREADS", "COMPILATION_NUM_THREADS", true, {NULL}, "a non-negative number"},
    {"HINT_BF16", "INFERENCE_PRECISION_HINT", false, {"yes"}, "YES"},
    {"NUM_STREAMS", "NUM_STREAMS", true, {"auto", "numa"}, "either AUTO/NUMA/<int_value>"},
    {"PERFORMANCE_HINT",
     "PERFORMANCE_HINT",
     false,
     {"latency", "throughput", "cumulative_throughput"},
     "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT"},
};

static bool openvino_options_fits(const struct rule *rule, const char *value)
{
    for (size_t i = 0; i < sizeof rule->words / sizeof *rule->words && rule->words[i]; i++)
        if (strcmp(value, rule->words[i]) == 0)
            return true;
    return rule->number && strspn(value, "0123456789") == strlen(value);
}

static void add_property(struct options *options, const char *key, const char *value)
{
    size_t at = options->property_count++;
    options->properties[at].key = key;
    snprintf(options->properties[at].value, OPTIONS_MAX_VALUE, "%s", value);
}

static void add_count(struct options *options, const char *key, int count)
{
    char text[16];
    snprintf(text, sizeof text, "%d", count);
    add_property(options, key, text);
}

static void copy_changed(char *to, const char *from, int (*change)(int))
{
    size_t i = 0;
    for (; from[i] && i < OPTIONS_MAX_VALUE - 1; i++)
        to[i] = (char)change((unsigned char)from[i]);
    to[i] = '\0';
}

/* YES or NO, as the reference has it, or another boolean. */
static TRITONSERVER_Error *openvino_options_read_switch(yyjson_val *config, const char *parameter,
                                                        bool *ret_value)
{
    const char *text = bconfig_parameter(config, parameter);
    bool yes = text && strcasecmp(text, "yes") == 0;
    *ret_value = yes;
    if (!text || *text == '\0' || yes || strcasecmp(text, "no") == 0)
        return NULL;
    TRITONSERVER_Error *err = bconfig_parse_bool(text, ret_value);
    if (!err)
        return NULL;
    berr_drop(err);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "expected the parameter '%s' to be YES or NO, got %s", parameter, text);
}

static bool openvino_options_has(const struct options *options, const char *property)
{
    for (size_t i = 0; i < options->property_count; i++)
        if (strcmp(options->properties[i].key, property) == 0)
            return true;
    return false;
}

static int instances_of(yyjson_val *config)
{
    int64_t sum = 0;
    size_t index, count;
    yyjson_val *group;
    yyjson_arr_foreach(yyjson_obj_get(config, "instance_group"), index, count, group)
    {
        sum += bconfig_int(yyjson_obj_get(group, "count"), 1);
    }
    return sum < 1 ? 1 : sum > INT16_MAX ? INT16_MAX : (int)sum;
}

/* Sets defaults. Otherwise the runtime would use all processors of the machine, even those that
 * the process may not use, would bind each model's threads to the first processors, and would
 * run two instances one after the other. */
static void add_cpu_defaults(const struct vino *vino, yyjson_val *config, struct options *options)
{
    if (!openvino_options_has(options, "INFERENCE_NUM_THREADS"))
        add_count(options, "INFERENCE_NUM_THREADS", vino->processors);
    add_property(options, "ENABLE_CPU_PINNING", "NO");
    if (!openvino_options_has(options, "NUM_STREAMS") &&
        !openvino_options_has(options, "PERFORMANCE_HINT")) {
        int instances = instances_of(config);
        add_count(options, "NUM_STREAMS",
                  instances < vino->processors ? instances : vino->processors);
    }
}

TRITONSERVER_Error *options_read(const struct vino *vino, yyjson_val *config,
                                 struct options *ret_options)
{
    struct options options = {.device = "CPU"};
    const char *device = bconfig_parameter(config, "TARGET_DEVICE");
    if (device && *device)
        copy_changed(options.device, device, toupper);
    bool on_cpu = strcmp(options.device, "CPU") == 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        const char *text = bconfig_parameter(config, rule->parameter);
        char value[OPTIONS_MAX_VALUE];
        if (!text || *text == '\0')
            continue;
        copy_changed(value, text, tolower);
        if (!openvino_options_fits(rule, value))
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "expected the parameter '%s' to be %s, got %s", rule->parameter,
                            rule->expected, value);
        copy_changed(value, text, toupper);
        if (strcmp(rule->parameter, "HINT_BF16") == 0)
            add_property(&options, rule->property, "bf16");
        else if (!on_cpu || strcmp(rule->parameter, "COMPILATION_NUM_THREADS") != 0)
            add_property(&options, rule->property, value);
    }
    const char *extension = bconfig_parameter(config, "CPU_EXTENSION_PATH");
    options.extension = extension && *extension ? extension : NULL;
    TRITONSERVER_Error *err =
        openvino_options_read_switch(config, "SKIP_OV_DYNAMIC_BATCHSIZE", &options.fixed_batch);
    if (!err)
        err = openvino_options_read_switch(config, "ENABLE_BATCH_PADDING", &options.pads);
    if (!err)
        err = openvino_options_read_switch(config, "RESHAPE_IO_LAYERS", &options.reshapes);
    if (err)
        return err;
    /* Otherwise the runtime computes with lower precision than the file's on processors where
     * that is faster. */
    if (strstr(options.device, "CPU") &&
        !openvino_options_has(&options, "INFERENCE_PRECISION_HINT"))
        add_property(&options, "EXECUTION_MODE_HINT", "ACCURACY");
    if (on_cpu)
        add_cpu_defaults(vino, config, &options);
    *ret_options = options;
    return NULL;
}
