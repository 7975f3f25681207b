#include "bcomplete.h"

#include "bconfig.h"
#include "berr.h"

const char *bcomplete_type(TRITONSERVER_DataType datatype)
{
    switch (datatype) {
    case TRITONSERVER_TYPE_BOOL:
        return "TYPE_BOOL";
    case TRITONSERVER_TYPE_UINT8:
        return "TYPE_UINT8";
    case TRITONSERVER_TYPE_UINT16:
        return "TYPE_UINT16";
    case TRITONSERVER_TYPE_UINT32:
        return "TYPE_UINT32";
    case TRITONSERVER_TYPE_UINT64:
        return "TYPE_UINT64";
    case TRITONSERVER_TYPE_INT8:
        return "TYPE_INT8";
    case TRITONSERVER_TYPE_INT16:
        return "TYPE_INT16";
    case TRITONSERVER_TYPE_INT32:
        return "TYPE_INT32";
    case TRITONSERVER_TYPE_INT64:
        return "TYPE_INT64";
    case TRITONSERVER_TYPE_FP16:
        return "TYPE_FP16";
    case TRITONSERVER_TYPE_FP32:
        return "TYPE_FP32";
    case TRITONSERVER_TYPE_FP64:
        return "TYPE_FP64";
    case TRITONSERVER_TYPE_BYTES:
        return "TYPE_STRING";
    case TRITONSERVER_TYPE_BF16:
        return "TYPE_BF16";
    case TRITONSERVER_TYPE_INVALID:
        break;
    }
    return "TYPE_INVALID";
}

yyjson_mut_val *bcomplete_tensor(yyjson_mut_doc *doc, const char *name,
                                 TRITONSERVER_DataType datatype, const int64_t *dims, size_t rank,
                                 bool batches)
{
    yyjson_mut_val *entry = yyjson_mut_obj(doc);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    size_t first = batches ? 1 : 0;
    yyjson_mut_obj_add_str(doc, entry, "name", name);
    yyjson_mut_obj_add_str(doc, entry, "data_type", bcomplete_type(datatype));
    for (size_t i = first; i < rank; i++)
        yyjson_mut_arr_add_sint(doc, list, dims[i]);
    if (rank <= first) {
        yyjson_mut_arr_add_sint(doc, list, 1);
        if (batches) {
            yyjson_mut_val *reshape = yyjson_mut_obj(doc);
            yyjson_mut_obj_add_arr(doc, reshape, "shape");
            yyjson_mut_obj_add_val(doc, entry, "reshape", reshape);
        }
    }
    yyjson_mut_obj_add_val(doc, entry, "dims", list);
    return entry;
}

int64_t bcomplete_batching(yyjson_mut_doc *doc, yyjson_mut_val *root, int64_t max_batch_size,
                           int64_t usual)
{
    if (max_batch_size == 0 && usual > 0) {
        max_batch_size = usual;
        yyjson_mut_obj_put(root, yyjson_mut_str(doc, "max_batch_size"),
                           yyjson_mut_sint(doc, usual));
    }
    bool chosen = yyjson_mut_obj_get(root, "sequence_batching") ||
                  yyjson_mut_obj_get(root, "dynamic_batching");
    if (max_batch_size > 1 && !chosen)
        yyjson_mut_obj_add_obj(doc, root, "dynamic_batching");
    return max_batch_size;
}

TRITONSERVER_Error *bcomplete_wrong_shape(const char *model, const char *tensor,
                                          struct bcomplete_shape expected,
                                          struct bcomplete_shape configured,
                                          enum bcomplete_batch batch)
{
    static const char *const whys[] = {
        "",
        "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor "
        "shape, making complete ",
        "an initial batch dimension because max_batch_size was not given and has been filled in "
        "followed by the explicit tensor shape, making complete ",
    };
    char model_text[BCONFIG_SHAPE_TEXT], text[BCONFIG_SHAPE_TEXT];
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "model '%s', tensor '%s': the model expects %zu dimensions (shape %s) but the "
                    "model configuration specifies %zu dimensions (%sshape %s)%s",
                    model, tensor, expected.rank,
                    bconfig_shape_text(expected.dims, expected.rank, model_text), configured.rank,
                    whys[batch], bconfig_shape_text(configured.dims, configured.rank, text),
                    batch == BCOMPLETE_BATCH_FILLED_IN
                        ? ": leave the batch dimension out of dims, or list inputs and outputs "
                          "both, so that nothing is filled in"
                        : "");
}
