#include "check.h"

#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"

enum { TEXT_SIZE = BCONFIG_SHAPE_TEXT };

struct check {
    const char *model;
    yyjson_val *config;
    bool batches;
    const struct trt_tensor *tensors;
    size_t count;
    struct check_role *roles;
};

size_t check_find(const struct trt_tensor *tensors, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && (!name || strcmp(tensors[i].name, name) != 0))
        i++;
    return i;
}

static TRITONSERVER_Error *unknown_name(const struct check *c, const char *kind, const char *name)
{
    struct berr_names names = {0};
    for (size_t i = 0; i < c->count; i++)
        if (c->tensors[i].is_input == (strcmp(kind, "input") == 0))
            berr_names_add(&names, c->tensors[i].name);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unexpected inference %s '%s', allowed %ss are: %s", kind, name ? name : "",
                    kind, names.text);
}

static TRITONSERVER_Error *tensorrt_check_datatype(const struct check *c, const char *kind,
                                                   const struct trt_tensor *tensor,
                                                   const char *configured)
{
    TRITONSERVER_DataType datatype = bconfig_datatype(configured);
    if (tensor->is_shape && datatype != TRITONSERVER_TYPE_INT64 &&
        datatype != TRITONSERVER_TYPE_INT32)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unexpected datatype %s in model configuration for shape %s '%s', "
                        "expecting TYPE_INT32 or TYPE_INT64 for %s",
                        configured ? configured : "", kind, tensor->name, c->model);
    if (datatype == tensor->datatype)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "unexpected datatype TYPE_%s for inference %s '%s', expecting %s for %s",
                    TRITONSERVER_DataTypeString(tensor->datatype), kind, tensor->name,
                    configured ? configured : "", c->model);
}

/* A shape tensor's configuration lists its values, but the one for the batch. */
static TRITONSERVER_Error *check_shape_tensor(const struct check *c,
                                              const struct trt_tensor *tensor, const int64_t *dims,
                                              size_t rank)
{
    char model_text[TEXT_SIZE], config_text[TEXT_SIZE];
    const int64_t batch = c->batches ? 1 : 0;
    if (tensor->rank > 1)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unable to load model '%s', shape binding '%s' can only be 0-d or 1-D "
                        "tensor, got %s",
                        c->model, tensor->name,
                        bconfig_shape_text(tensor->dims, tensor->rank, model_text));
    if (rank == 1 && dims[0] != -1 &&
        (tensor->rank ? dims[0] + batch == tensor->dims[0] : !batch && dims[0] == 1))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "unable to load model '%s', binding '%s' shape expected by framework %s "
                    "doesn't match model configuration shape %s",
                    c->model, tensor->name,
                    bconfig_shape_text(tensor->dims, tensor->rank, model_text),
                    bconfig_shape_text(dims, rank, config_text));
}

static bool scalar_fits(const int64_t *dims, size_t rank)
{
    for (size_t i = 0; i < rank; i++)
        if (dims[i] != 1)
            return false;
    return true;
}

/* full  of the configuration, with the batch in front */
static bool dims_fit(const struct trt_tensor *tensor, const int64_t *full, size_t rank)
{
    bool fit = tensor->rank == rank;
    for (size_t i = 0; fit && i < rank; i++)
        fit = tensor->dims[i] == -1 || full[i] == -1 || tensor->dims[i] == full[i];
    return fit;
}

static TRITONSERVER_Error *tensorrt_check_shape(const struct check *c,
                                                const struct trt_tensor *tensor,
                                                const int64_t *dims, size_t rank)
{
    char model_text[TEXT_SIZE], config_text[TEXT_SIZE];
    int64_t full[PROFILE_MOST_DIMS + 1] = {-1};
    const size_t first = c->batches ? 1 : 0;
    if (tensor->is_shape)
        return check_shape_tensor(c, tensor, dims, rank);
    if (first && tensor->rank == 0)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "model '%s', tensor '%s': for the model to support batching the shape "
                        "should have at least 1 dimension; but shape expected by the model is []",
                        c->model, tensor->name);
    if (tensor->rank == 0 && scalar_fits(dims, rank))
        return NULL;
    if (rank)
        memcpy(full + first, dims, rank * sizeof *dims);
    if (dims_fit(tensor, full, first + rank))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model '%s', tensor '%s': the model expects %zu dimensions (shape %s) but the "
                    "model configuration specifies %zu dimensions (%sshape %s)",
                    c->model, tensor->name, tensor->rank,
                    bconfig_shape_text(tensor->dims, tensor->rank, model_text), first + rank,
                    first ? "an initial batch dimension because max_batch_size > 0 followed by the "
                            "explicit tensor shape, making complete "
                          : "",
                    bconfig_shape_text(full, first + rank, config_text));
}

static TRITONSERVER_Error *check_mark(const struct check *c, const char *kind,
                                      const struct trt_tensor *tensor, yyjson_val *entry)
{
    bool shape = yyjson_get_bool(yyjson_obj_get(entry, "is_shape_tensor"));
    bool format = yyjson_get_bool(yyjson_obj_get(entry, "is_non_linear_format_io"));
    if (shape != tensor->is_shape)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "%s '%s' for model '%s' is %s", kind,
                        tensor->name, c->model,
                        shape ? "incorrectly marked as a shape tensor in the model configuration."
                              : "a shape tensor but the model configuration doesn't mark it as a "
                                "shape tensor.");
    if (format == tensor->is_linear)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "%s '%s' for model '%s' uses a %slinear IO format, but "
                        "'is_non_linear_format_io' is incorrectly set to %s in the model "
                        "configuration.",
                        kind, tensor->name, c->model, format ? "" : "non-",
                        format ? "true" : "false");
    return NULL;
}

static TRITONSERVER_Error *check_entry_shape(const struct check *c, const struct trt_tensor *tensor,
                                             yyjson_val *entry)
{
    int64_t dims[PROFILE_MOST_DIMS];
    yyjson_val *reshape = yyjson_obj_get(entry, "reshape");
    yyjson_val *list = reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(entry, "dims");
    size_t rank = bconfig_shape(list, dims, PROFILE_MOST_DIMS);
    if (rank <= PROFILE_MOST_DIMS)
        return tensorrt_check_shape(c, tensor, dims, rank);
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model '%s', tensor '%s': TensorRT has at most %d dimensions", c->model,
                    tensor->name, PROFILE_MOST_DIMS);
}

/* Checks an entry of "input" or "output", or one side of a state. */
static TRITONSERVER_Error *tensorrt_check_entry(const struct check *c, const char *kind,
                                                const char *name, yyjson_val *entry,
                                                struct check_role **ret_role)
{
    size_t at = check_find(c->tensors, c->count, name);
    if (at == c->count || c->tensors[at].is_input != (strcmp(kind, "input") == 0))
        return unknown_name(c, kind, name);
    const struct trt_tensor *tensor = &c->tensors[at];
    TRITONSERVER_Error *err = check_mark(c, kind, tensor, entry);
    if (!err)
        err = tensorrt_check_datatype(c, kind, tensor,
                                      yyjson_get_str(yyjson_obj_get(entry, "data_type")));
    if (!err)
        err = check_entry_shape(c, tensor, entry);
    c->roles[at].configured = true;
    *ret_role = &c->roles[at];
    return err;
}

static TRITONSERVER_Error *check_list(const struct check *c, const char *kind)
{
    struct check_role *role;
    size_t index, count;
    yyjson_val *entry;
    TRITONSERVER_Error *err = NULL;
    yyjson_arr_foreach(yyjson_obj_get(c->config, kind), index, count, entry)
    {
        err = tensorrt_check_entry(c, kind, yyjson_get_str(yyjson_obj_get(entry, "name")), entry,
                                   &role);
        if (err)
            return err;
        role->served = strcmp(kind, "output") == 0;
    }
    return NULL;
}

static TRITONSERVER_Error *check_control(const struct check *c, const char *name,
                                         yyjson_val *control)
{
    char text[TEXT_SIZE];
    const char *type = bconfig_control_type(control);
    const size_t first = c->batches ? 1 : 0;
    size_t at = check_find(c->tensors, c->count, name);
    if (at == c->count || !c->tensors[at].is_input)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "configuration specified sequence control '%s', but model does not provide "
                        "that input",
                        name);
    const struct trt_tensor *tensor = &c->tensors[at];
    bool fits =
        tensor->rank == first + 1 && (tensor->dims[first] == 1 || tensor->dims[first] == -1);
    if (!fits || tensor->is_shape || !tensor->is_linear)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unexpected shape %s for control input '%s' for model %s",
                        bconfig_shape_text(tensor->dims, tensor->rank, text), name, c->model);
    c->roles[at].configured = true;
    return tensorrt_check_datatype(c, "input", tensor, type);
}

static TRITONSERVER_Error *tensorrt_check_sequence(const struct check *c)
{
    yyjson_val *sequence = yyjson_obj_get(c->config, "sequence_batching"), *entry;
    size_t index, count;
    struct check_role *role;
    TRITONSERVER_Error *err = NULL;
    yyjson_arr_foreach(yyjson_obj_get(sequence, "control_input"), index, count, entry)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(entry, "name"));
        yyjson_val *control = yyjson_arr_get_first(yyjson_obj_get(entry, "control"));
        if (name && control && !err)
            err = check_control(c, name, control);
    }
    yyjson_arr_foreach(yyjson_obj_get(sequence, "state"), index, count, entry)
    {
        if (!err)
            err = tensorrt_check_entry(
                c, "input", yyjson_get_str(yyjson_obj_get(entry, "input_name")), entry, &role);
        if (!err)
            err = tensorrt_check_entry(
                c, "output", yyjson_get_str(yyjson_obj_get(entry, "output_name")), entry, &role);
        if (!err)
            role->is_state = true;
    }
    return err;
}

/* Formats of which the bytes of each request can be counted, and lie in one piece. */
static TRITONSERVER_Error *check_format(const struct check *c, const char *kind,
                                        const struct trt_tensor *tensor)
{
    const char *what = NULL;
    if (tensor->vector == TRT_PADDED)
        what = "one of the deep learning accelerator's own";
    else if (c->batches && tensor->vector > 1 && tensor->vector_dim == 0)
        what = "one that mixes the requests of a batch";
    return what ? berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                           "%s '%s' for model '%s' uses a non-linear IO format that is not "
                           "served: %s",
                           kind, tensor->name, c->model, what)
                : NULL;
}

/* What the plan has is served, and each of its inputs gets something. */
static TRITONSERVER_Error *check_plan(const struct check *c)
{
    bool rows = !c->batches;
    for (size_t i = 0; i < c->count; i++) {
        const struct trt_tensor *tensor = &c->tensors[i];
        const char *kind = tensor->is_input ? "input" : "output";
        TRITONSERVER_Error *err = check_format(c, kind, tensor);
        if (err)
            return err;
        if (tensor->datatype == TRITONSERVER_TYPE_INVALID)
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                            "%s '%s' for model '%s' has a datatype that the protocol does not have",
                            kind, tensor->name, c->model);
        if (tensor->is_input && !c->roles[i].configured)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "unable to load model '%s', the plan has an input '%s', which the "
                            "configuration does not have",
                            c->model, tensor->name);
        rows = rows || (tensor->is_input && !tensor->is_shape);
    }
    return rows
               ? NULL
               : berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                          "unable to load model '%s': max_batch_size > 0 needs an input that is no "
                          "shape tensor",
                          c->model);
}

TRITONSERVER_Error *check_tensors(const char *model, yyjson_val *config,
                                  const struct trt_tensor *tensors, size_t count,
                                  struct check_role *ret_roles)
{
    const struct check c = {.model = model,
                            .config = config,
                            .batches = bconfig_int(yyjson_obj_get(config, "max_batch_size"), 0) > 0,
                            .tensors = tensors,
                            .count = count,
                            .roles = ret_roles};
    TRITONSERVER_Error *err = check_list(&c, "input");
    if (!err)
        err = check_list(&c, "output");
    if (!err)
        err = tensorrt_check_sequence(&c);
    return err ? err : check_plan(&c);
}
