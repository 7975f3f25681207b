#include "complete.h"

#include <string.h>

#include "../common/bcomplete.h"
#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/blog.h"
#include "batch_parts.h"

/* Whether the dims in a configuration's entries omit a batch dimension. An entry without dims
 * leaves it to the model; a ragged entry means that there is a batch, whatever the others say. */
enum hint { HINT_NONE, HINT_MODEL, HINT_BATCH, HINT_NO_BATCH, HINT_RAGGED };

static bool can_batch(const struct model_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct model_tensor *tensor = &list->tensors[i];
        if (tensor->has_shape && (tensor->rank == 0 || tensor->dims[0] != -1))
            return false;
    }
    return true;
}

static TRITONSERVER_Error *add_hint(const struct model *model, const struct model_list *list,
                                    yyjson_val *entry, enum hint *hint)
{
    const struct model_tensor *tensor =
        model_find(list, yyjson_get_str(yyjson_obj_get(entry, "name")));
    yyjson_val *reshape = yyjson_obj_get(entry, "reshape");
    size_t rank =
        yyjson_arr_size(reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(entry, "dims"));
    if (!tensor || tensor->rank == 0 || *hint == HINT_RAGGED)
        return NULL;
    if (yyjson_get_bool(yyjson_obj_get(entry, "allow_ragged_batch"))) {
        *hint = HINT_RAGGED;
        return NULL;
    }
    if (!reshape && rank == 0) {
        *hint = *hint == HINT_NONE ? HINT_MODEL : *hint;
        return NULL;
    }
    enum hint found = rank == tensor->rank - 1 ? HINT_BATCH : HINT_NO_BATCH;
    if (*hint >= HINT_BATCH && *hint != found)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unable to autofill for '%s', model tensor configurations are "
                        "contradicting each other in terms of whether batching is supported",
                        model->name);
    *hint = found;
    return NULL;
}

static TRITONSERVER_Error *add_hints(const struct model *model, const struct model_list *list,
                                     const char *kind, enum hint *hint)
{
    size_t index, count;
    yyjson_val *entry;
    TRITONSERVER_Error *err = NULL;
    yyjson_arr_foreach(yyjson_obj_get(model->config, kind), index, count, entry)
    {
        if (!err)
            err = add_hint(model, list, entry, hint);
    }
    return err;
}

/* ret_batches: the first dimension is the batch, which the entries omit. */
static TRITONSERVER_Error *tensorflow_complete_put_batching(const struct model *model,
                                                            yyjson_mut_doc *doc,
                                                            yyjson_mut_val *root, bool *ret_batches)
{
    bool listed = yyjson_arr_size(yyjson_obj_get(model->config, "input")) > 0 ||
                  yyjson_arr_size(yyjson_obj_get(model->config, "output")) > 0;
    enum hint hint = listed ? HINT_NONE : HINT_MODEL;
    int64_t given = model->max_batch_size, usual = model->runtime->default_max_batch_size;
    bool able = can_batch(&model->inputs) && can_batch(&model->outputs);
    *ret_batches = false;
    if (!able && given > 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unable to autofill for '%s', configuration specified max-batch %lld but "
                        "model signature does not support batching",
                        model->name, (long long)given);
    TRITONSERVER_Error *err = able ? add_hints(model, &model->inputs, "input", &hint) : NULL;
    if (!err && able)
        err = add_hints(model, &model->outputs, "output", &hint);
    bool wanted = usual > 0 && hint != HINT_NONE && hint != HINT_NO_BATCH;
    if (err || !able || (given == 0 && !wanted))
        return err;
    *ret_batches = bcomplete_batching(doc, root, given, usual) > 0;
    if (given == 0)
        blog_warn("autofilled max_batch_size to %lld for model '%s' since batching is supported "
                  "but no max_batch_size is specified in model configuration. Must specify "
                  "max_batch_size to utilize autofill with a larger max batch size",
                  (long long)usual, model->name);
    return NULL;
}

static TRITONSERVER_Error *tensorflow_complete_describe(const struct model *model,
                                                        yyjson_mut_doc *doc,
                                                        const struct model_tensor *tensor,
                                                        bool batches, yyjson_mut_val **ret_entry)
{
    if (tensor->datatype == TRITONSERVER_TYPE_INVALID)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unable to process tensor '%s' for '%s', unsupported datatype: type %d of "
                        "TensorFlow",
                        tensor->name, model->name, (int)tensor->type);
    if (!tensor->has_shape)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "Unable to autofill for '%s': the shape of model tensor '%s' is not known "
                        "and dimensions are not defined",
                        model->name, tensor->name);
    *ret_entry =
        bcomplete_tensor(doc, tensor->name, tensor->datatype, tensor->dims, tensor->rank, batches);
    return *ret_entry ? NULL : berr_no_memory();
}

/* Completes an entry of the configuration. */
static TRITONSERVER_Error *fill_entry(const struct model *model, yyjson_mut_doc *doc,
                                      const struct model_tensor *tensor, bool batches,
                                      yyjson_mut_val *entry)
{
    yyjson_mut_val *told = NULL;
    const char *type = yyjson_mut_get_str(yyjson_mut_obj_get(entry, "data_type"));
    bool has_type = bconfig_datatype(type) != TRITONSERVER_TYPE_INVALID;
    bool has_dims = yyjson_mut_arr_size(yyjson_mut_obj_get(entry, "dims")) > 0;
    if (has_type && has_dims)
        return NULL;
    if (has_dims) {
        yyjson_mut_obj_put(entry, yyjson_mut_str(doc, "data_type"),
                           yyjson_mut_str(doc, bcomplete_type(tensor->datatype)));
        return NULL;
    }
    TRITONSERVER_Error *err = tensorflow_complete_describe(model, doc, tensor, batches, &told);
    if (err)
        return err;
    static const char *const keys[] = {"data_type", "dims", "reshape"};
    for (size_t i = has_type ? 1 : 0; i < sizeof keys / sizeof *keys; i++) {
        yyjson_mut_val *value = yyjson_mut_obj_get(told, keys[i]);
        if (value)
            yyjson_mut_obj_put(entry, yyjson_mut_str(doc, keys[i]),
                               yyjson_mut_val_mut_copy(doc, value));
    }
    return NULL;
}

/* True if one of the entries names the tensor under `key`. */
static bool names_tensor(yyjson_val *entries, const char *key, const char *name)
{
    size_t index, count;
    yyjson_val *entry;
    yyjson_arr_foreach(entries, index, count, entry)
    {
        const char *found = yyjson_get_str(yyjson_obj_get(entry, key));
        if (found && strcmp(found, name) == 0)
            return true;
    }
    return false;
}

/* True for inputs that the server gives the model. */
static bool is_given(const struct model *model, const char *name)
{
    yyjson_val *sequence = yyjson_obj_get(model->config, "sequence_batching");
    return batch_parts_names(model, name) ||
           names_tensor(yyjson_obj_get(sequence, "control_input"), "name", name) ||
           names_tensor(yyjson_obj_get(sequence, "state"), "input_name", name);
}

static TRITONSERVER_Error *tensorflow_complete_put_tensors(const struct model *model,
                                                           yyjson_mut_doc *doc,
                                                           yyjson_mut_val *root, const char *kind,
                                                           const struct model_list *tensors,
                                                           bool batches)
{
    size_t index, count;
    yyjson_mut_val *entry, *listed = yyjson_mut_obj_get(root, kind);
    yyjson_val *given = yyjson_obj_get(model->config, kind);
    bool inputs = tensors == &model->inputs;
    TRITONSERVER_Error *err = NULL;
    if (!listed) {
        listed = yyjson_mut_arr(doc);
        yyjson_mut_obj_add_val(doc, root, kind, listed);
    }
    yyjson_mut_arr_foreach(listed, index, count, entry)
    {
        const struct model_tensor *tensor =
            model_find(tensors, yyjson_mut_get_str(yyjson_mut_obj_get(entry, "name")));
        if (tensor && !err)
            err = fill_entry(model, doc, tensor, batches, entry);
    }
    if (!inputs && yyjson_arr_size(given) > 0) /* an output that is not listed is not served */
        return err;
    for (size_t i = 0; i < tensors->count && !err; i++) {
        const struct model_tensor *tensor = &tensors->tensors[i];
        if (names_tensor(given, "name", tensor->name) || (inputs && is_given(model, tensor->name)))
            continue;
        err = tensorflow_complete_describe(model, doc, tensor, batches, &entry);
        if (!err)
            yyjson_mut_arr_append(listed, entry);
    }
    return err;
}

TRITONSERVER_Error *complete_fill_in(const struct model *model)
{
    bool batches;
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(model->config_doc, NULL);
    if (!doc)
        return berr_no_memory();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    TRITONSERVER_Error *err = tensorflow_complete_put_batching(model, doc, root, &batches);
    if (!err)
        err = tensorflow_complete_put_tensors(model, doc, root, "input", &model->inputs, batches);
    if (!err)
        err = tensorflow_complete_put_tensors(model, doc, root, "output", &model->outputs, batches);
    if (!err)
        err = bconfig_set_of_model(model->handle, doc);
    yyjson_mut_doc_free(doc);
    return err;
}
