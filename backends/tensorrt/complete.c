#include "complete.h"

#include <string.h>

#include "../common/bcomplete.h"
#include "../common/bconfig.h"
#include "../common/berr.h"
#include "check.h"

struct completing {
    const char *model;
    const struct trt_tensor *tensors;
    size_t count;
    yyjson_mut_doc *doc;
    yyjson_mut_val *root;
    bool batches;
};

/* What the shapes in a configuration say of batching. */
struct hints {
    size_t shapes; /* that are given */
    bool batches;  /* one has a dimension less than the plan's, or a shape value less */
};

static TRITONSERVER_Error *hint_of(const struct completing *c, yyjson_val *entry,
                                   struct hints *hints)
{
    int64_t first = 0;
    yyjson_val *reshape = yyjson_obj_get(entry, "reshape");
    yyjson_val *list = reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(entry, "dims");
    size_t rank = bconfig_shape(list, &first, 1);
    size_t at = check_find(c->tensors, c->count, yyjson_get_str(yyjson_obj_get(entry, "name")));
    if (at == c->count || rank == 0)
        return NULL;
    const struct trt_tensor *tensor = &c->tensors[at];
    bool batches =
        tensor->is_shape ? tensor->rank && tensor->dims[0] == first + 1 : tensor->rank == rank + 1;
    if (hints->shapes++ && batches != hints->batches)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "unable to autofill for '%s', model tensor configurations are "
                        "contradicting each other in terms of whether batching is supported",
                        c->model);
    hints->batches = batches;
    return NULL;
}

static TRITONSERVER_Error *read_hints(const struct completing *c, yyjson_val *config,
                                      struct hints *hints)
{
    static const char *const kinds[] = {"input", "output"};
    TRITONSERVER_Error *err = NULL;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t index, count;
        yyjson_val *entry;
        yyjson_arr_foreach(yyjson_obj_get(config, kinds[k]), index, count, entry)
        {
            if (!err)
                err = hint_of(c, entry, hints);
        }
    }
    return err;
}

static TRITONSERVER_Error *tensorrt_complete_batching(struct completing *c, yyjson_val *config,
                                                      int64_t most_rows)
{
    int64_t given = bconfig_int(yyjson_obj_get(config, "max_batch_size"), 0);
    struct hints hints = {0};
    TRITONSERVER_Error *err = read_hints(c, config, &hints);
    if (err)
        return err;
    if (hints.batches && most_rows == 0)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "autofill failed for model '%s': model tensor shape configuration hints "
                        "for dynamic batching but the underlying engine doesn't support batching.",
                        c->model);
    if (hints.shapes && !hints.batches)
        most_rows = 0;
    if (given > most_rows)
        return berr_new(TRITONSERVER_ERROR_INTERNAL,
                        "autofill failed for model '%s': configuration specified max-batch %lld "
                        "but TensorRT engine only supports max-batch %lld",
                        c->model, (long long)given, (long long)most_rows);
    c->batches = bcomplete_batching(c->doc, c->root, given, most_rows) > 0;
    return NULL;
}

/* An entry of "input" or "output" as the plan has it. */
static yyjson_mut_val *describe(const struct completing *c, const struct trt_tensor *tensor)
{
    const int64_t values = tensor->rank ? tensor->dims[0] - (c->batches ? 1 : 0) : 1;
    yyjson_mut_val *entry =
        tensor->is_shape
            ? bcomplete_tensor(c->doc, tensor->name, tensor->datatype, &values, 1, false)
            : bcomplete_tensor(c->doc, tensor->name, tensor->datatype, tensor->dims, tensor->rank,
                               c->batches);
    yyjson_mut_obj_add_bool(c->doc, entry, "is_shape_tensor", tensor->is_shape);
    yyjson_mut_obj_add_bool(c->doc, entry, "is_non_linear_format_io", !tensor->is_linear);
    return entry;
}

static bool is_missing(yyjson_mut_val *value)
{
    const char *text = yyjson_mut_get_str(value);
    return !value || (yyjson_mut_is_arr(value) && yyjson_mut_arr_size(value) == 0) ||
           (text && (!*text || strcmp(text, "TYPE_INVALID") == 0));
}

static void fill(const struct completing *c, yyjson_mut_val *entry, yyjson_mut_val *from,
                 const char *key)
{
    yyjson_mut_val *value = yyjson_mut_obj_get(from, key);
    if (value)
        yyjson_mut_obj_put(entry, yyjson_mut_str(c->doc, key),
                           yyjson_mut_val_mut_copy(c->doc, value));
}

/* Sets what an entry of the configuration leaves open. */
static TRITONSERVER_Error *tensorrt_complete_entry(const struct completing *c,
                                                   yyjson_mut_val *entry)
{
    const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(entry, "name"));
    size_t at = check_find(c->tensors, c->count, name);
    if (at == c->count)
        return NULL; /* check_tensors names it */
    yyjson_mut_val *known = describe(c, &c->tensors[at]);
    if (is_missing(yyjson_mut_obj_get(entry, "data_type")))
        fill(c, entry, known, "data_type");
    if (is_missing(yyjson_mut_obj_get(entry, "dims"))) {
        fill(c, entry, known, "dims");
        fill(c, entry, known, "reshape");
    }
    bool marked = yyjson_mut_get_bool(yyjson_mut_obj_get(entry, "is_shape_tensor"));
    if (marked && !c->tensors[at].is_shape)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "'%s' is incorrectly specified as a shape tensor.", name);
    fill(c, entry, known, "is_shape_tensor");
    marked = yyjson_mut_get_bool(yyjson_mut_obj_get(entry, "is_non_linear_format_io"));
    if (marked && c->tensors[at].is_linear)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "'%s' uses a linear IO format, but 'is_non_linear_format_io' is "
                        "incorrectly set to true in the model configuration.",
                        name);
    fill(c, entry, known, "is_non_linear_format_io");
    return NULL;
}

static TRITONSERVER_Error *complete_list(const struct completing *c, const char *kind)
{
    const bool inputs = strcmp(kind, "input") == 0;
    yyjson_mut_val *list = yyjson_mut_obj_get(c->root, kind), *entry;
    size_t index, count;
    TRITONSERVER_Error *err = NULL;
    yyjson_mut_arr_foreach(list, index, count, entry)
    {
        if (!err)
            err = tensorrt_complete_entry(c, entry);
    }
    if (err || yyjson_mut_arr_size(list) > 0)
        return err;
    list = yyjson_mut_arr(c->doc);
    for (size_t i = 0; i < c->count; i++) {
        if (c->tensors[i].is_input != inputs)
            continue;
        if (c->tensors[i].datatype == TRITONSERVER_TYPE_INVALID)
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                            "%s '%s' for model '%s' has a datatype that the protocol does not have",
                            kind, c->tensors[i].name, c->model);
        yyjson_mut_arr_add_val(list, describe(c, &c->tensors[i]));
    }
    yyjson_mut_obj_put(c->root, yyjson_mut_str(c->doc, kind), list);
    return NULL;
}

TRITONSERVER_Error *complete_config(const char *model, yyjson_doc *config,
                                    const struct trt_tensor *tensors, size_t count,
                                    int64_t most_rows, yyjson_mut_doc **ret)
{
    struct completing c = {.model = model,
                           .tensors = tensors,
                           .count = count,
                           .doc = yyjson_doc_mut_copy(config, NULL)};
    if (!c.doc)
        return berr_no_memory();
    c.root = yyjson_mut_doc_get_root(c.doc);
    TRITONSERVER_Error *err =
        tensorrt_complete_batching(&c, yyjson_doc_get_root(config), most_rows);
    if (!err)
        err = complete_list(&c, "input");
    if (!err)
        err = complete_list(&c, "output");
    if (err)
        yyjson_mut_doc_free(c.doc);
    else
        *ret = c.doc;
    return err;
}
