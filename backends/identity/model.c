#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/berr.h"

/* "INPUT7" and "OUTPUT7" belong together; what is left pairs by position. */
static const char *index_of(yyjson_val *tensor, const char *stem)
{
    const char *name = yyjson_get_str(yyjson_obj_get(tensor, "name"));
    size_t length = strlen(stem);
    return name && strncmp(name, stem, length) == 0 && name[length] ? name + length : NULL;
}

static yyjson_val *find_by_index(yyjson_val *tensors, const char *stem, const char *wanted)
{
    size_t index, count;
    yyjson_val *tensor;
    yyjson_arr_foreach(tensors, index, count, tensor)
    {
        const char *found = index_of(tensor, stem);
        if (wanted && found && strcmp(wanted, found) == 0)
            return tensor;
    }
    return NULL;
}

/* The input of an output: by its index, or the next one that no output has by its own.
 * place  of the next input to look at; moves on */
static yyjson_val *input_of(yyjson_val *inputs, yyjson_val *outputs, yyjson_val *output,
                            size_t *place)
{
    yyjson_val *input = find_by_index(inputs, "INPUT", index_of(output, "OUTPUT"));
    if (input)
        return input;
    do
        input = yyjson_arr_get(inputs, (*place)++);
    while (find_by_index(outputs, "OUTPUT", index_of(input, "INPUT")));
    return input;
}

/* The shape that the backend sees: reshape if there is one, else dims. */
static size_t identity_model_shape(yyjson_val *tensor, int64_t *dims)
{
    yyjson_val *reshape = yyjson_obj_get(tensor, "reshape");
    yyjson_val *shape = reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(tensor, "dims");
    return bconfig_shape(shape, dims, MODEL_MAX_DIMS);
}

static void format_shape(const int64_t *dims, size_t count, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < count && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", i ? "," : "", (long long)dims[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

static TRITONSERVER_Error *compare_shapes(const int64_t *a, size_t a_count, const int64_t *b,
                                          size_t b_count)
{
    if (a_count == b_count && memcmp(a, b, a_count * sizeof *a) == 0)
        return NULL;
    char a_text[256], b_text[256];
    format_shape(a, a_count, a_text, sizeof a_text);
    format_shape(b, b_count, b_text, sizeof b_text);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "expected input and output shape to match, got %s and %s", a_text, b_text);
}

static TRITONSERVER_Error *read_pair(struct model_pair *pair, yyjson_val *input, yyjson_val *output)
{
    const char *input_name = yyjson_get_str(yyjson_obj_get(input, "name"));
    const char *output_name = yyjson_get_str(yyjson_obj_get(output, "name"));
    const char *input_type = yyjson_get_str(yyjson_obj_get(input, "data_type"));
    const char *output_type = yyjson_get_str(yyjson_obj_get(output, "data_type"));
    if (!input_name || !output_name || !input_type || !output_type)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "every input and output needs a name and a data_type");
    if (strcmp(input_type, output_type) != 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "expected input and output datatype to match, got %s and %s", input_type,
                        output_type);

    int64_t output_dims[MODEL_MAX_DIMS];
    size_t input_count = identity_model_shape(input, pair->dims);
    size_t output_count = identity_model_shape(output, output_dims);
    if (input_count > MODEL_MAX_DIMS || output_count > MODEL_MAX_DIMS)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "'%s' has more than %d dimensions",
                        input_name, MODEL_MAX_DIMS);
    TRITONSERVER_Error *err = compare_shapes(pair->dims, input_count, output_dims, output_count);
    if (err)
        return err;

    for (size_t i = 0; i < input_count; i++)
        if (pair->dims[i] < 0)
            pair->dims[i] = 1;
    pair->dims_count = (uint32_t)input_count;
    pair->datatype = bconfig_datatype(input_type);
    pair->optional = yyjson_get_bool(yyjson_obj_get(input, "optional"));
    pair->input = strdup(input_name);
    pair->output = strdup(output_name);
    return pair->input && pair->output ? NULL : berr_no_memory();
}

/* An output that shows a control of the sequence batcher: one element of the output's datatype. */
static TRITONSERVER_Error *identity_model_read_control(struct model_pair *pair, yyjson_val *control,
                                                       yyjson_val *output)
{
    pair->datatype = bconfig_datatype(yyjson_get_str(yyjson_obj_get(output, "data_type")));
    pair->dims[0] = 1;
    pair->dims_count = 1;
    pair->input = strdup(yyjson_get_str(yyjson_obj_get(control, "name")));
    pair->output = strdup(yyjson_get_str(yyjson_obj_get(output, "name")));
    return pair->input && pair->output ? NULL : berr_no_memory();
}

/* The control that an output shows; NULL = it shows an input. */
static yyjson_val *control_of(yyjson_val *inputs, yyjson_val *controls, yyjson_val *output)
{
    const char *index = index_of(output, "OUTPUT");
    return find_by_index(inputs, "INPUT", index) ? NULL : find_by_index(controls, "INPUT", index);
}

/* Every input and control belongs to one output. */
static TRITONSERVER_Error *check_pair_count(yyjson_val *inputs, yyjson_val *controls,
                                            yyjson_val *outputs)
{
    size_t index, all, shown = 0, inputs_count = yyjson_arr_size(inputs);
    yyjson_val *output;
    yyjson_arr_foreach(outputs, index, all, output)
    {
        shown += control_of(inputs, controls, output) != NULL;
    }
    if (all - shown == inputs_count)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model configuration must have equal input/output pairs, it has %zu inputs for "
                    "%zu outputs",
                    inputs_count, all - shown);
}

static TRITONSERVER_Error *read_pairs(struct model *model, yyjson_val *config)
{
    yyjson_val *inputs = yyjson_obj_get(config, "input");
    yyjson_val *outputs = yyjson_obj_get(config, "output");
    yyjson_val *controls =
        yyjson_obj_get(yyjson_obj_get(config, "sequence_batching"), "control_input");
    size_t count = yyjson_arr_size(outputs), place = 0;
    TRITONSERVER_Error *err = check_pair_count(inputs, controls, outputs);
    if (err)
        return err;
    model->pairs = calloc(count ? count : 1, sizeof *model->pairs);
    if (!model->pairs)
        return berr_no_memory();

    size_t index, all;
    yyjson_val *output;
    yyjson_arr_foreach(outputs, index, all, output)
    {
        yyjson_val *control = control_of(inputs, controls, output), *input = NULL;
        struct model_pair *pair = &model->pairs[model->pair_count++];
        if (!control)
            input = input_of(inputs, outputs, output, &place);
        err = control ? identity_model_read_control(pair, control, output)
                      : read_pair(pair, input, output);
        if (err)
            return err;
    }
    return NULL;
}

/* Reads a parameter that is a count. */
static TRITONSERVER_Error *read_count(yyjson_val *config, const char *key, uint64_t *ret_count)
{
    const char *text = bconfig_parameter(config, key);
    if (!text)
        return NULL;
    int64_t value = 0;
    TRITONSERVER_Error *err = bconfig_parse_int(text, &value);
    if (!err && value < 0)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "it must not be negative, got %s", text);
    if (!err)
        *ret_count = (uint64_t)value;
    return berr_about(err, "parameter '%s'", key);
}

static TRITONSERVER_Error *read_parameters(struct model *model, yyjson_val *config)
{
    uint64_t delay_ms = 0, delay_us = 0, creation_s = 0;
    TRITONSERVER_Error *err = read_count(config, "execute_delay_ms", &delay_ms);
    if (!err)
        err = read_count(config, "execute_delay_us", &delay_us);
    if (!err)
        err = read_count(config, "instance_wise_delay_multiplier", &model->delay_multiplier);
    if (!err)
        err = read_count(config, "creation_delay_sec", &creation_s);
    if (err)
        return err;
    model->delay_ns = delay_ms * 1000000u + delay_us * 1000u;
    if (creation_s)
        nanosleep(&(struct timespec){.tv_sec = (time_t)creation_s}, NULL);
    return NULL;
}

const size_t model_size = sizeof(struct model);

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    (void)runtime;
    yyjson_doc *doc = NULL;
    yyjson_val *config = NULL;
    int64_t max_batch_size = 0;
    TRITONSERVER_Error *err = bconfig_read(handle, &doc, &config, &max_batch_size);
    model->batches = max_batch_size > 0;
    if (!err)
        err = read_pairs(model, config);
    if (!err)
        err = read_parameters(model, config);
    yyjson_doc_free(doc);
    return err;
}

void model_fini(struct model *model)
{
    for (uint32_t i = 0; i < model->pair_count; i++) {
        free(model->pairs[i].input);
        free(model->pairs[i].output);
    }
    free(model->pairs);
}
