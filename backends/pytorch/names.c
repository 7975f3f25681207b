#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/bfind.h"

enum { MAX_DIGITS = 9 };

/* The index at the end of a name NAME__INDEX.
 * ret_length  of NAME
 * returns     -1 for a name of another form */
static int64_t position_of(const char *name, size_t *ret_length)
{
    size_t end = strlen(name), at = end;
    int64_t position = 0;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    if (at == end || end - at > MAX_DIGITS || at < 3 || name[at - 1] != '_' || name[at - 2] != '_')
        return -1;
    for (size_t i = at; i < end; i++)
        position = position * 10 + (name[i] - '0');
    *ret_length = at - 2;
    return position;
}

static bool holds_several(const struct libtorch_argument *argument)
{
    return argument->kind == LIBTORCH_LIST || argument->kind == LIBTORCH_DICT;
}

/* The argument with this name, which need not end after `length`. */
static size_t find_argument(const struct model *model, size_t count, const char *name,
                            size_t length)
{
    size_t i = 0;
    while (i < count && (strlen(model->arguments[i].name) != length ||
                         memcmp(model->arguments[i].name, name, length) != 0))
        i++;
    return i;
}

static TRITONSERVER_Error *no_such_input(const struct model *model, size_t count, const char *name)
{
    struct berr_names names = {0};
    for (size_t i = 0; i < count; i++)
        berr_names_add(&names, model->arguments[i].name);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', input '%s' is neither an argument of the model's "
                    "method forward, which has: %s; nor is it named <name>__<index>",
                    model->name, name, names.text);
}

/* Finds the argument of an input: by its name, then as NAME__INDEX. That means an element if
 * NAME is a list, or if the only argument is a list; else the argument at INDEX. */
static TRITONSERVER_Error *place_input(const struct model *model, size_t count,
                                       struct model_input *input)
{
    size_t length = 0;
    input->element = 0;
    input->argument = find_argument(model, count, input->name, strlen(input->name));
    if (count == 1 && model->arguments[0].kind == LIBTORCH_DICT)
        input->argument = 0;
    if (input->argument < count)
        return NULL;
    int64_t position = position_of(input->name, &length);
    if (position < 0)
        return no_such_input(model, count, input->name);
    input->argument = find_argument(model, count, input->name, length);
    bool of_list =
        input->argument < count && model->arguments[input->argument].kind == LIBTORCH_LIST;
    if (count == 1 && model->arguments[0].kind == LIBTORCH_LIST)
        input->argument = 0;
    else if (!of_list)
        input->argument = (size_t)position;
    input->element = position;
    if (input->argument < count)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', the input '%s' refers to an input index which does "
                    "not exist: the model has %zu inputs",
                    model->name, input->name, count);
}

/* Checks the type. Strings come as a list, which has one dimension.
 * entry  NULL for tensors without dims in the configuration */
static TRITONSERVER_Error *pytorch_names_check_type(const struct model *model, const char *kind,
                                                    const char *name, const char *type,
                                                    yyjson_val *entry)
{
    int64_t dims[BRUN_MAX_DIMS];
    if (!libtorch_has_type(bconfig_datatype(type)) &&
        bconfig_datatype(type) != TRITONSERVER_TYPE_BYTES)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unsupported datatype %s for %s '%s' for model '%s'", type ? type : "",
                        kind, name, model->name);
    yyjson_val *reshape = yyjson_obj_get(entry, "reshape");
    size_t rank =
        bconfig_shape(reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(entry, "dims"),
                      dims, BRUN_MAX_DIMS);
    if (bconfig_datatype(type) != TRITONSERVER_TYPE_BYTES ||
        rank + (model->max_batch_size > 0 ? 1 : 0) <= 1)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "Triton only supports 1 dimensional List of String as %s for '%s' for model "
                    "'%s'",
                    kind, name, model->name);
}

/* Checks that the argument accepts what the configuration says. */
static TRITONSERVER_Error *check_argument(const struct model *model, size_t count,
                                          const struct model_input *input)
{
    const struct libtorch_argument *argument = &model->arguments[input->argument];
    bool strings = input->datatype == TRITONSERVER_TYPE_BYTES;
    bool supported =
        argument->kind == LIBTORCH_DICT ? count == 1 : argument->kind != LIBTORCH_OTHER;
    if (supported && strings == (argument->kind == LIBTORCH_STRINGS))
        return NULL;
    return berr_new(
        TRITONSERVER_ERROR_INVALID_ARG,
        "unable to load model '%s', input '%s' has data type TYPE_%s, but the model's argument "
        "'%s' is of type '%s'; supported are Tensor, List[Tensor], int, float and bool, List[str] "
        "for TYPE_STRING, and Dict(str, Tensor) as the only argument",
        model->name, input->name, strings ? "STRING" : TRITONSERVER_DataTypeString(input->datatype),
        argument->name, argument->type);
}

static TRITONSERVER_Error *pytorch_names_add_input(struct model *model, size_t count,
                                                   const char *name, const char *type,
                                                   yyjson_val *entry)
{
    struct model_input *input = &model->inputs[model->input_count];
    input->name = name ? name : "";
    input->datatype = bconfig_datatype(type);
    TRITONSERVER_Error *err = place_input(model, count, input);
    if (!err)
        err = pytorch_names_check_type(model, "input", input->name, type, entry);
    if (!err)
        err = check_argument(model, count, input);
    for (size_t i = 0; i < model->input_count && !err; i++)
        if (model->inputs[i].argument == input->argument &&
            model->inputs[i].element == input->element &&
            model->arguments[input->argument].kind != LIBTORCH_DICT)
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                           "unable to load model '%s', the inputs '%s' and '%s' are the same "
                           "argument of the model",
                           model->name, model->inputs[i].name, input->name);
    model->input_count++;
    return err;
}

/* Adds the configured inputs, and those that the server adds for sequence models. */
static TRITONSERVER_Error *pytorch_names_add_inputs(struct model *model, size_t count)
{
    size_t index, size;
    yyjson_val *entry;
    TRITONSERVER_Error *err = NULL;
    yyjson_arr_foreach(yyjson_obj_get(model->config, "input"), index, size, entry)
    {
        if (!err)
            err =
                pytorch_names_add_input(model, count, yyjson_get_str(yyjson_obj_get(entry, "name")),
                                        yyjson_get_str(yyjson_obj_get(entry, "data_type")), entry);
    }
    yyjson_val *sequence = yyjson_obj_get(model->config, "sequence_batching");
    yyjson_arr_foreach(yyjson_obj_get(sequence, "control_input"), index, size, entry)
    {
        yyjson_val *control = yyjson_arr_get_first(yyjson_obj_get(entry, "control"));
        if (!err)
            err =
                pytorch_names_add_input(model, count, yyjson_get_str(yyjson_obj_get(entry, "name")),
                                        bconfig_control_type(control), NULL);
    }
    yyjson_arr_foreach(yyjson_obj_get(sequence, "state"), index, size, entry)
    {
        if (!err)
            err = pytorch_names_add_input(
                model, count, yyjson_get_str(yyjson_obj_get(entry, "input_name")),
                yyjson_get_str(yyjson_obj_get(entry, "data_type")), entry);
    }
    return err;
}

static size_t room_for_inputs(const struct model *model)
{
    yyjson_val *sequence = yyjson_obj_get(model->config, "sequence_batching");
    return yyjson_arr_size(yyjson_obj_get(model->config, "input")) +
           yyjson_arr_size(yyjson_obj_get(sequence, "control_input")) +
           yyjson_arr_size(yyjson_obj_get(sequence, "state"));
}

/* If each argument is one input, there must be as many inputs as arguments. */
static TRITONSERVER_Error *pytorch_names_check_count(const struct model *model, size_t count)
{
    size_t needed = 0, given = room_for_inputs(model);
    struct berr_names names = {0};
    bool several = false;
    for (size_t i = 0; i < count; i++) {
        several = several || holds_several(&model->arguments[i]);
        needed += model->arguments[i].optional ? 0 : 1;
        berr_names_add(&names, model->arguments[i].name);
    }
    if (given == 0 && needed > 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s': its file does not say which data types and "
                        "shapes inputs have, so config.pbtxt has to list them: %s",
                        model->name, names.text);
    if (several || (given >= needed && given <= count))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', configuration expects %zu inputs, model provides "
                    "%zu",
                    model->name, given, count);
}

static int by_argument(const void *left, const void *right)
{
    const struct model_input *a = left, *b = right;
    if (a->argument != b->argument)
        return a->argument < b->argument ? -1 : 1;
    return (a->element > b->element) - (a->element < b->element);
}

/* Every argument up to the last given one needs an input; later ones need default values. */
static TRITONSERVER_Error *pytorch_names_check_complete(struct model *model, size_t count)
{
    size_t next = 0;
    for (size_t i = 0; i < model->input_count; i++) {
        if (model->inputs[i].argument > next)
            break;
        next = model->inputs[i].argument + 1;
    }
    model->argument_count = next;
    bool gap = model->input_count && model->inputs[model->input_count - 1].argument >= next;
    if (next == count || (!gap && model->arguments[next].optional))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unable to load model '%s', no input of the configuration is the argument '%s' "
                    "of the model",
                    model->name, model->arguments[next].name);
}

/* The elements of a list are counted from 0 without gaps.
 * model->inputs  sorted */
static TRITONSERVER_Error *names_check_elements(const struct model *model)
{
    int64_t next = 0;
    for (size_t i = 0; i < model->input_count; i++) {
        const struct model_input *input = &model->inputs[i];
        const struct libtorch_argument *argument = &model->arguments[input->argument];
        if (i == 0 || model->inputs[i - 1].argument != input->argument)
            next = 0;
        if (argument->kind == LIBTORCH_LIST && input->element != next)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "unable to load model '%s', no input of the configuration is element "
                            "%lld of the argument '%s' of the model",
                            model->name, (long long)next, argument->name);
        next++;
    }
    return NULL;
}

static TRITONSERVER_Error *resolve_inputs(struct model *model)
{
    size_t count = libtorch_arguments(model->module, &model->arguments);
    model->inputs = calloc(room_for_inputs(model) + 1, sizeof *model->inputs);
    if (!model->inputs)
        return berr_no_memory();
    TRITONSERVER_Error *err = pytorch_names_check_count(model, count);
    if (!err)
        err = pytorch_names_add_inputs(model, count);
    if (err)
        return err;
    qsort(model->inputs, model->input_count, sizeof *model->inputs, by_argument);
    err = pytorch_names_check_complete(model, count);
    return err ? err : names_check_elements(model);
}

static TRITONSERVER_Error *place_output(const struct model *model, struct model_output *output)
{
    bool keyed;
    size_t length;
    int64_t count = libtorch_results(model->module, &keyed);
    output->index = libtorch_result_index(model->module, output->name);
    if (output->index < 0)
        output->index = position_of(output->name, &length);
    if (output->index < 0 && !keyed)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s', output '%s' is not named <name>__<index>, and "
                        "%s",
                        model->name, output->name,
                        model->is_package ? "is no result of the package"
                                          : "the model gives back no dictionary");
    if (output->index < 0 || count < 0 || output->index < count)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "The output %s in the model configuration refers to an output index which "
                    "doesn't exist. This model has %lld outputs",
                    output->name, (long long)count);
}

static struct model_output *pytorch_names_find_output(const struct model *model, const char *name)
{
    return bfind_named(model->outputs, model->output_count, sizeof *model->outputs, name);
}

static TRITONSERVER_Error *pytorch_names_add_output(struct model *model, const char *name,
                                                    const char *type, yyjson_val *entry,
                                                    struct model_output **ret_output)
{
    struct model_output *output = &model->outputs[model->output_count++];
    output->name = name ? name : "";
    output->datatype = bconfig_datatype(type);
    *ret_output = output;
    TRITONSERVER_Error *err = place_output(model, output);
    return err ? err : pytorch_names_check_type(model, "output", output->name, type, entry);
}

/* Adds a state, which may be an output too. */
static TRITONSERVER_Error *add_state(struct model *model, yyjson_val *entry)
{
    const char *name = yyjson_get_str(yyjson_obj_get(entry, "output_name"));
    const char *type = yyjson_get_str(yyjson_obj_get(entry, "data_type"));
    struct model_output *output = pytorch_names_find_output(model, name);
    TRITONSERVER_Error *err =
        output ? NULL : pytorch_names_add_output(model, name, type, entry, &output);
    if (!err && (bconfig_datatype(type) == TRITONSERVER_TYPE_BYTES ||
                 bconfig_datatype(type) != output->datatype))
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "unable to load model '%s', the state '%s' has data type %s: it has to be "
                       "the output's, and no strings",
                       model->name, output->name, type);
    output->is_state = true;
    return err;
}

static TRITONSERVER_Error *resolve_outputs(struct model *model)
{
    size_t index, count;
    yyjson_val *entry;
    struct model_output *output;
    TRITONSERVER_Error *err = NULL;
    yyjson_val *list = yyjson_obj_get(model->config, "output");
    yyjson_val *states =
        yyjson_obj_get(yyjson_obj_get(model->config, "sequence_batching"), "state");
    model->serves_all = yyjson_arr_size(list) == 0;
    model->outputs =
        calloc(yyjson_arr_size(list) + yyjson_arr_size(states) + 1, sizeof *model->outputs);
    if (!model->outputs)
        return berr_no_memory();
    yyjson_arr_foreach(list, index, count, entry)
    {
        if (err)
            return err;
        err = pytorch_names_add_output(model, yyjson_get_str(yyjson_obj_get(entry, "name")),
                                       yyjson_get_str(yyjson_obj_get(entry, "data_type")), entry,
                                       &output);
        output->served = true;
    }
    yyjson_arr_foreach(states, index, count, entry)
    {
        if (!err)
            err = add_state(model, entry);
    }
    return err;
}

TRITONSERVER_Error *names_resolve(struct model *model)
{
    TRITONSERVER_Error *err =
        bconfig_refuse(model->config, model->name, "pytorch",
                       BCONFIG_BATCH_INPUT | BCONFIG_BATCH_OUTPUT | BCONFIG_RAGGED);
    bconfig_warn_optional(model->config, model->name, "pytorch");
    if (!err)
        err = resolve_inputs(model);
    return err ? err : resolve_outputs(model);
}

void names_free(struct model *model)
{
    free(model->inputs);
    free(model->outputs);
}
