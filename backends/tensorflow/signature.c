#include "signature.h"

#include <stdlib.h>
#include <string.h>

#include "../common/berr.h"
#include "../common/blog.h"
#include "batch_parts.h"
#include "messages.h"

static bool is_for_loading(struct wire key)
{
    return wire_is(key, "__saved_model_init_op") || wire_is(key, "__saved_model_train_op");
}

/* Chooses the requested signature, else the default one, else any.
 * returns  false when there is none */
static bool choose_signature(const struct model *model, const TF_Buffer *meta,
                             struct wire *ret_signature)
{
    const char *wanted = model->options.signature ? model->options.signature : "serving_default";
    const unsigned char *bytes = meta->data;
    struct wire all = {.at = bytes, .end = bytes + meta->length};
    struct wire_field field;
    struct wire key, value, other = {0}, other_value = {0};
    while (wire_next(&all, &field)) {
        if (field.number != META_SIGNATURES)
            continue;
        key = message_part(field.content, MAP_KEY);
        value = message_part(field.content, MAP_VALUE);
        if (wire_is(key, wanted)) {
            *ret_signature = value;
            return true;
        }
        if (!is_for_loading(key)) {
            other = key;
            other_value = value;
        }
    }
    if (model->options.signature || !other.at)
        return false;
    blog_warn("model '%s': unable to find serving signature '%s', using signature '%.*s'",
              model->name, wanted, (int)(other.end - other.at), (const char *)other.at);
    *ret_signature = other_value;
    return true;
}

static TRITONSERVER_Error *tensorflow_signature_read_shape(const struct model *model,
                                                           struct wire shape,
                                                           struct model_tensor *tensor)
{
    struct wire_field field, of_dim;
    tensor->has_shape = true;
    while (wire_next(&shape, &field)) {
        if (field.number == SHAPE_UNKNOWN && field.value)
            tensor->has_shape = false;
        if (field.number != SHAPE_DIM)
            continue;
        if (tensor->rank == BRUN_MAX_DIMS - 1)
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                            "model '%s', tensor '%s': fewer than %d dimensions are supported",
                            model->name, tensor->name, BRUN_MAX_DIMS);
        int64_t *dim = &tensor->dims[tensor->rank++];
        while (wire_next(&field.content, &of_dim))
            if (of_dim.number == DIM_SIZE)
                *dim = (int64_t)of_dim.value;
    }
    return NULL;
}

static TRITONSERVER_Error *tensorflow_signature_read_tensor(const struct model *model,
                                                            struct wire entry,
                                                            struct model_tensor *tensor)
{
    struct wire key, value;
    struct wire_field field;
    TRITONSERVER_Error *err = NULL;
    key = message_part(entry, MAP_KEY);
    value = message_part(entry, MAP_VALUE);
    tensor->name = wire_text(key);
    if (!tensor->name)
        return berr_no_memory();
    while (!err && wire_next(&value, &field)) {
        if (field.number == TENSOR_NAME && !tensor->source)
            tensor->source = wire_text(field.content);
        else if (field.number == TENSOR_TYPE)
            tensor->type = (TF_DataType)field.value;
        else if (field.number == TENSOR_SHAPE)
            err = tensorflow_signature_read_shape(model, field.content, tensor);
    }
    tensor->datatype = runtime_datatype(tensor->type);
    if (!err && !tensor->source)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                       "unable to load model '%s': '%s' is made of several tensors, as sparse ones "
                       "are, which is not supported",
                       model->name, tensor->name);
    return err;
}

static int tensorflow_signature_by_name(const void *left, const void *right)
{
    const struct model_tensor *a = left, *b = right;
    return strcmp(a->name, b->name);
}

/* Reads the tensors of one side, sorted, because the file has no order. */
static TRITONSERVER_Error *read_side(const struct model *model, struct wire signature,
                                     uint32_t side, struct model_list *list)
{
    struct wire rest = signature;
    struct wire_field field;
    size_t count = 0;
    TRITONSERVER_Error *err = NULL;
    while (wire_next(&rest, &field))
        count += field.number == side;
    list->tensors = calloc(count + 1, sizeof *list->tensors);
    if (!list->tensors)
        return berr_no_memory();
    while (!err && wire_next(&signature, &field))
        if (field.number == side)
            err = tensorflow_signature_read_tensor(model, field.content,
                                                   &list->tensors[list->count++]);
    if (!err)
        qsort(list->tensors, list->count, sizeof *list->tensors, tensorflow_signature_by_name);
    return err;
}

TRITONSERVER_Error *signature_read_saved(struct model *model, const TF_Buffer *meta)
{
    struct wire signature;
    if (!choose_signature(model, meta, &signature))
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unable to load model '%s', expected '%s' signature", model->name,
                        model->options.signature ? model->options.signature : "serving_default");
    TRITONSERVER_Error *err = read_side(model, signature, SIGNATURE_INPUTS, &model->inputs);
    return err ? err : read_side(model, signature, SIGNATURE_OUTPUTS, &model->outputs);
}

/* TensorFlow's name for an operation whose result only a request can give. */
static const char fed_operation[] = "Place"
                                    "holder";

static bool can_be(TF_Operation *operation, bool input)
{
    bool fed = strncmp(TF_OperationOpType(operation), fed_operation, sizeof fed_operation - 1) == 0;
    return input ? fed : !fed && TF_OperationNumOutputs(operation) > 0;
}

static TRITONSERVER_Error *tensorflow_signature_no_such_tensor(const struct session *session,
                                                               bool input, const char *name)
{
    struct berr_names names = {0};
    size_t position = 0;
    TF_Operation *operation;
    while (!names.cut && (operation = TF_GraphNextOperation(session->graph, &position)))
        if (can_be(operation, input))
            berr_names_add(&names, TF_OperationName(operation));
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unexpected inference %s '%s', allowed %ss are: %s", input ? "input" : "output",
                    name, input ? "input" : "output", names.text);
}

static bool is_scalar(const struct session *session, TF_Output at)
{
    TF_Status *status = TF_NewStatus();
    bool scalar =
        TF_GraphGetTensorNumDims(session->graph, at, status) == 0 && TF_GetCode(status) == TF_OK;
    TF_DeleteStatus(status);
    return scalar;
}

/* Adds the tensor that the configuration calls `name`, unless it was added before. */
static TRITONSERVER_Error *add_tensor(const struct session *session, bool input, const char *name,
                                      struct model_list *list)
{
    TF_Output at;
    if (!name || model_find(list, name))
        return NULL;
    if (strchr(name, ':') || !session_find(session, name, &at) || !can_be(at.oper, input))
        return tensorflow_signature_no_such_tensor(session, input, name);
    struct model_tensor *tensor = &list->tensors[list->count++];
    tensor->name = strdup(name);
    tensor->source = strdup(name);
    tensor->type = TF_OperationOutputType(at);
    /* a graph's information about other shapes is not binding */
    tensor->has_shape = is_scalar(session, at);
    tensor->datatype = runtime_datatype(tensor->type);
    return tensor->name && tensor->source ? NULL : berr_no_memory();
}

static TRITONSERVER_Error *tensorflow_signature_make_room(struct model_list *list, size_t more)
{
    size_t room = list->count + more + 1;
    struct model_tensor *grown = realloc(list->tensors, room * sizeof *grown);
    if (!grown)
        return berr_no_memory();
    memset(grown + list->count, 0, (room - list->count) * sizeof *grown);
    list->tensors = grown;
    return NULL;
}

/* Adds the tensors that entries of the configuration name under `key`. */
static TRITONSERVER_Error *add_all(const struct session *session, bool input, yyjson_val *entries,
                                   const char *key, struct model_list *list)
{
    size_t index, count;
    yyjson_val *entry;
    TRITONSERVER_Error *err = tensorflow_signature_make_room(list, yyjson_arr_size(entries));
    yyjson_arr_foreach(entries, index, count, entry)
    {
        if (!err)
            err = add_tensor(session, input, yyjson_get_str(yyjson_obj_get(entry, key)), list);
    }
    return err;
}

/* Adds the inputs that batch_input names. */
static TRITONSERVER_Error *add_computed(struct model *model, const struct session *session)
{
    size_t index, count, i, targets;
    yyjson_val *entry, *name;
    struct model_list *list = &model->inputs;
    TRITONSERVER_Error *err = tensorflow_signature_make_room(list, batch_parts_computed(model));
    yyjson_arr_foreach(yyjson_obj_get(model->config, "batch_input"), index, count, entry)
    {
        yyjson_arr_foreach(yyjson_obj_get(entry, "target_name"), i, targets, name)
        {
            if (!err)
                err = add_tensor(session, true, yyjson_get_str(name), list);
        }
    }
    return err;
}

TRITONSERVER_Error *signature_read_graph(struct model *model, const struct session *session)
{
    yyjson_val *config = model->config;
    yyjson_val *sequence = yyjson_obj_get(config, "sequence_batching");
    yyjson_val *states = yyjson_obj_get(sequence, "state");
    yyjson_val *inputs = yyjson_obj_get(config, "input");
    yyjson_val *outputs = yyjson_obj_get(config, "output");
    if (yyjson_arr_size(inputs) == 0 || yyjson_arr_size(outputs) == 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s': a GraphDef does not say what its inputs and "
                        "outputs are, so config.pbtxt has to list them",
                        model->name);
    TRITONSERVER_Error *err = add_all(session, true, inputs, "name", &model->inputs);
    if (!err)
        err = add_all(session, true, yyjson_obj_get(sequence, "control_input"), "name",
                      &model->inputs);
    if (!err)
        err = add_all(session, true, states, "input_name", &model->inputs);
    if (!err)
        err = add_computed(model, session);
    if (!err)
        err = add_all(session, false, outputs, "name", &model->outputs);
    return err ? err : add_all(session, false, states, "output_name", &model->outputs);
}

static void tensorflow_signature_free_list(struct model_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->tensors[i].name);
        free(list->tensors[i].source);
    }
    free(list->tensors);
    *list = (struct model_list){0};
}

void signature_free(struct model *model)
{
    tensorflow_signature_free_list(&model->inputs);
    tensorflow_signature_free_list(&model->outputs);
}
