#include "bconfig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "berr.h"
#include "blog.h"

static TRITONSERVER_Error *bconfig_parse(TRITONSERVER_Message *message, yyjson_doc **ret_doc)
{
    const char *text;
    size_t size;
    TRITONSERVER_Error *err = TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    if (err)
        return err;
    if (size == 0) {
        text = "{}";
        size = 2;
    }
    yyjson_doc *doc = yyjson_read(text, size, 0);
    if (!doc)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "the server's configuration is not JSON");
    *ret_doc = doc;
    return NULL;
}

TRITONSERVER_Error *bconfig_of_model(TRITONBACKEND_Model *model, yyjson_doc **ret_doc)
{
    TRITONSERVER_Message *message;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelConfig(model, 1, &message);
    if (err)
        return err;
    err = bconfig_parse(message, ret_doc);
    berr_drop(TRITONSERVER_MessageDelete(message));
    return err;
}

TRITONSERVER_Error *bconfig_read(TRITONBACKEND_Model *model, yyjson_doc **doc,
                                 yyjson_val **ret_config, int64_t *ret_max_batch_size)
{
    yyjson_doc_free(*doc);
    *doc = NULL;
    TRITONSERVER_Error *err = bconfig_of_model(model, doc);
    if (err)
        return err;
    *ret_config = yyjson_doc_get_root(*doc);
    *ret_max_batch_size = bconfig_int(yyjson_obj_get(*ret_config, "max_batch_size"), 0);
    return NULL;
}

TRITONSERVER_Error *bconfig_of_backend(TRITONBACKEND_Backend *backend, yyjson_doc **ret_doc)
{
    TRITONSERVER_Message *message;
    TRITONSERVER_Error *err = TRITONBACKEND_BackendConfig(backend, &message);
    return err ? err : bconfig_parse(message, ret_doc);
}

bool bconfig_is_listed(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

void bconfig_warn_unknown(TRITONBACKEND_Backend *backend, yyjson_val *settings,
                          const char *const *names)
{
    static const char *const OF_SERVER[] = {"auto-complete-config", "backend-directory",
                                            "min-compute-capability", "default-max-batch-size",
                                            NULL};
    const char *of = "";
    size_t index, count;
    yyjson_val *key, *value;
    berr_drop(TRITONBACKEND_BackendName(backend, &of));
    yyjson_obj_foreach(settings, index, count, key, value)
    {
        const char *name = yyjson_get_str(key);
        if (!bconfig_is_listed(OF_SERVER, name) && !bconfig_is_listed(names, name))
            blog_warn("the setting '%s' of backend '%s' is unknown and has no effect", name, of);
    }
}

/* Why a configuration cannot be written: memory, or a name out of the model's file. */
static TRITONSERVER_Error *bconfig_not_written(yyjson_mut_doc *doc, const yyjson_write_err *why)
{
    static const char *const lists[] = {"input", "output"};
    if (why->code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION)
        return berr_no_memory();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        size_t index, count;
        yyjson_mut_val *entry, *list = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), lists[i]);
        yyjson_mut_arr_foreach(list, index, count, entry)
        {
            char *text = yyjson_mut_val_write(entry, 0, NULL);
            if (!text)
                return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                                "the name of the model's %s '%s' is not UTF-8: give it another",
                                lists[i], yyjson_mut_get_str(yyjson_mut_obj_get(entry, "name")));
            free(text);
        }
    }
    return berr_new(TRITONSERVER_ERROR_INTERNAL, "the configuration cannot be written: %s",
                    why->msg);
}

TRITONSERVER_Error *bconfig_set_of_model(TRITONBACKEND_Model *model, yyjson_mut_doc *doc)
{
    size_t size;
    yyjson_write_err why;
    char *text = yyjson_mut_write_opts(doc, 0, NULL, &size, &why);
    if (!text)
        return bconfig_not_written(doc, &why);
    TRITONSERVER_Message *message;
    TRITONSERVER_Error *err = TRITONSERVER_MessageNewFromSerializedJson(&message, text, size);
    free(text);
    if (err)
        return err;
    err = TRITONBACKEND_ModelSetConfig(model, 1, message);
    berr_drop(TRITONSERVER_MessageDelete(message));
    return err;
}

int64_t bconfig_int(yyjson_val *val, int64_t absent)
{
    if (yyjson_is_int(val))
        return yyjson_get_sint(val);
    const char *text = yyjson_get_str(val);
    if (!text || *text == '\0')
        return absent;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return errno || *end ? absent : value;
}

size_t bconfig_shape(yyjson_val *array, int64_t *ret_dims, size_t cap)
{
    size_t index, count;
    yyjson_val *dim;
    yyjson_arr_foreach(array, index, count, dim)
    {
        if (index < cap)
            ret_dims[index] = bconfig_int(dim, 0);
    }
    return yyjson_arr_size(array);
}

const char *bconfig_shape_text(const int64_t *dims, size_t rank, char *text)
{
    const size_t size = BCONFIG_SHAPE_TEXT, number = 32;
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < rank && used < size - number; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", i ? "," : "", (long long)dims[i]);
    snprintf(text + used, size - used, "]");
    return text;
}

const char *bconfig_parameter(yyjson_val *config, const char *key)
{
    yyjson_val *parameter = yyjson_obj_get(yyjson_obj_get(config, "parameters"), key);
    return yyjson_get_str(yyjson_obj_get(parameter, "string_value"));
}

static const char *input_name(yyjson_val *input)
{
    return yyjson_get_str(yyjson_obj_get(input, "name"));
}

TRITONSERVER_Error *bconfig_refuse(yyjson_val *config, const char *model, const char *backend,
                                   unsigned parts)
{
    yyjson_val *sequence = yyjson_obj_get(config, "sequence_batching"), *input;
    const struct {
        unsigned part;
        yyjson_val *of;
        const char *name;
    } lists[] = {
        {BCONFIG_BATCH_INPUT, config, "batch_input"},
        {BCONFIG_BATCH_OUTPUT, config, "batch_output"},
        {BCONFIG_CONTROLS, sequence, "control_input"},
        {BCONFIG_STATES, sequence, "state"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if ((parts & lists[i].part) && yyjson_arr_size(yyjson_obj_get(lists[i].of, lists[i].name)))
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                            "unable to load model '%s': the backend '%s' does not support %s",
                            model, backend, lists[i].name);
    size_t index, count;
    yyjson_arr_foreach(yyjson_obj_get(config, "input"), index, count, input)
    {
        if ((parts & BCONFIG_RAGGED) &&
            yyjson_get_bool(yyjson_obj_get(input, "allow_ragged_batch")))
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                            "unable to load model '%s', input '%s': the backend '%s' does not "
                            "support allow_ragged_batch",
                            model, input_name(input), backend);
    }
    return NULL;
}

void bconfig_warn_optional(yyjson_val *config, const char *model, const char *backend)
{
    size_t index, count;
    yyjson_val *input;
    yyjson_arr_foreach(yyjson_obj_get(config, "input"), index, count, input)
    {
        if (yyjson_get_bool(yyjson_obj_get(input, "optional")))
            blog_warn("input '%s' of model '%s' is optional, but the backend '%s' needs every "
                      "input: requests that leave it out are refused",
                      input_name(input), model, backend);
    }
}

int32_t bconfig_first_gpu(yyjson_val *config)
{
    yyjson_val *groups = yyjson_obj_get(config, "instance_group"), *group;
    size_t index, count;
    yyjson_arr_foreach(groups, index, count, group)
    {
        const char *kind = yyjson_get_str(yyjson_obj_get(group, "kind"));
        if (!kind || strcmp(kind, "KIND_GPU") != 0)
            return -1;
    }
    yyjson_val *gpu = yyjson_arr_get_first(yyjson_obj_get(yyjson_arr_get_first(groups), "gpus"));
    return gpu ? (int32_t)yyjson_get_int(gpu) : -1;
}

TRITONSERVER_Error *bconfig_parse_int(const char *text, int64_t *ret_value)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < INT32_MIN || value > INT32_MAX)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "failed to convert '%s' to integral number",
                        text);
    *ret_value = value;
    return NULL;
}

TRITONSERVER_Error *bconfig_parse_threads(const char *text, int64_t *ret_count)
{
    int64_t count;
    TRITONSERVER_Error *err = bconfig_parse_int(text, &count);
    if (!err && count > BCONFIG_MOST_THREADS)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "%lld threads are asked for, at most %d are supported", (long long)count,
                       BCONFIG_MOST_THREADS);
    if (!err)
        *ret_count = count;
    return err;
}

TRITONSERVER_Error *bconfig_parse_bool(const char *text, bool *ret_value)
{
    static const char *const yes[] = {"true", "on", "1"};
    static const char *const no[] = {"false", "off", "0"};
    for (size_t i = 0; i < 3; i++) {
        bool is_yes = strcasecmp(text, yes[i]) == 0;
        if (is_yes || strcasecmp(text, no[i]) == 0) {
            *ret_value = is_yes;
            return NULL;
        }
    }
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "failed to convert '%s' to boolean", text);
}

TRITONSERVER_DataType bconfig_datatype(const char *name)
{
    if (!name || strncmp(name, "TYPE_", 5) != 0)
        return TRITONSERVER_TYPE_INVALID;
    if (strcmp(name + 5, "STRING") == 0)
        return TRITONSERVER_TYPE_BYTES;
    return TRITONSERVER_StringToDataType(name + 5);
}

const char *bconfig_control_type(yyjson_val *control)
{
    if (yyjson_arr_size(yyjson_obj_get(control, "int32_false_true")) > 0)
        return "TYPE_INT32";
    if (yyjson_arr_size(yyjson_obj_get(control, "fp32_false_true")) > 0)
        return "TYPE_FP32";
    if (yyjson_arr_size(yyjson_obj_get(control, "bool_false_true")) > 0)
        return "TYPE_BOOL";
    const char *type = yyjson_get_str(yyjson_obj_get(control, "data_type"));
    return type ? type : "TYPE_INVALID";
}
