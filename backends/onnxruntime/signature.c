#include "signature.h"

#include <stdlib.h>

#include "../common/berr.h"

/* The functions that differ between inputs, outputs and overridable initializers. */
struct list {
    OrtStatus *(ORT_API_CALL *count)(const OrtSession *, size_t *);
    OrtStatus *(ORT_API_CALL *name)(const OrtSession *, size_t, OrtAllocator *, char **);
    OrtStatus *(ORT_API_CALL *type)(const OrtSession *, size_t, OrtTypeInfo **);
};

static const struct {
    ONNXTensorElementDataType type;
    TRITONSERVER_DataType datatype;
} types[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, TRITONSERVER_TYPE_BOOL},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, TRITONSERVER_TYPE_UINT8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, TRITONSERVER_TYPE_UINT16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, TRITONSERVER_TYPE_UINT32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, TRITONSERVER_TYPE_UINT64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, TRITONSERVER_TYPE_INT8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, TRITONSERVER_TYPE_INT16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, TRITONSERVER_TYPE_INT32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, TRITONSERVER_TYPE_INT64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, TRITONSERVER_TYPE_FP16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, TRITONSERVER_TYPE_FP32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, TRITONSERVER_TYPE_FP64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, TRITONSERVER_TYPE_BYTES},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, TRITONSERVER_TYPE_BF16},
};

TRITONSERVER_DataType signature_datatype(ONNXTensorElementDataType type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return types[i].datatype;
    return TRITONSERVER_TYPE_INVALID;
}

static const char *onnxruntime_signature_kind_name(ONNXType kind)
{
    switch (kind) {
    case ONNX_TYPE_TENSOR:
        return "ONNX_TYPE_TENSOR";
    case ONNX_TYPE_SEQUENCE:
        return "ONNX_TYPE_SEQUENCE";
    case ONNX_TYPE_MAP:
        return "ONNX_TYPE_MAP";
    case ONNX_TYPE_OPAQUE:
        return "ONNX_TYPE_OPAQUE";
    case ONNX_TYPE_SPARSETENSOR:
        return "ONNX_TYPE_SPARSETENSOR";
    case ONNX_TYPE_OPTIONAL:
        return "ONNX_TYPE_OPTIONAL";
    case ONNX_TYPE_UNKNOWN:
        break;
    }
    return "ONNX_TYPE_UNKNOWN";
}

static TRITONSERVER_Error *onnxruntime_signature_read_shape(const OrtApi *api,
                                                            const OrtTypeInfo *info,
                                                            struct model_tensor *tensor)
{
    const OrtTensorTypeAndShapeInfo *shape = NULL;
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    TRITONSERVER_Error *err = ort_err(api, api->GetOnnxTypeFromTypeInfo(info, &kind));
    if (!err && kind != ONNX_TYPE_TENSOR)
        err = berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                       "Unsupported ONNX Type '%s' for I/O '%s', expected 'ONNX_TYPE_TENSOR'.",
                       onnxruntime_signature_kind_name(kind), tensor->name);
    if (!err)
        err = ort_err(api, api->CastTypeInfoToTensorInfo(info, &shape));
    if (!err)
        err = ort_err(api, api->GetTensorElementType(shape, &tensor->type));
    if (!err)
        err = ort_err(api, api->GetDimensionsCount(shape, &tensor->rank));
    if (err)
        return err;
    tensor->datatype = signature_datatype(tensor->type);
    if (tensor->datatype == TRITONSERVER_TYPE_INVALID)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "unsupported ONNX element type %d for I/O '%s'", (int)tensor->type,
                        tensor->name);
    if (tensor->rank > BRUN_MAX_DIMS)
        return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                        "I/O '%s' has %zu dimensions, at most %d are supported", tensor->name,
                        tensor->rank, BRUN_MAX_DIMS);
    return ort_err(api, api->GetDimensions(shape, tensor->dims, tensor->rank));
}

static TRITONSERVER_Error *onnxruntime_signature_read_tensor(const struct session *session,
                                                             const struct list *list,
                                                             OrtAllocator *allocator, size_t index,
                                                             struct model_tensor *tensor)
{
    const OrtApi *api = session->ort->api;
    TRITONSERVER_Error *err =
        ort_err(api, list->name(session->handle, index, allocator, &tensor->name));
    OrtTypeInfo *info = NULL;
    if (!err)
        err = ort_err(api, list->type(session->handle, index, &info));
    if (!err)
        err = onnxruntime_signature_read_shape(api, info, tensor);
    if (info)
        api->ReleaseTypeInfo(info);
    return err;
}

/* Reads a list into `tensors`. Counts them one by one, so that a failure can free what was read. */
static TRITONSERVER_Error *onnxruntime_signature_read_list(const struct session *session,
                                                           const struct list *list, size_t expected,
                                                           bool initializer,
                                                           struct model_tensor *tensors,
                                                           size_t *count)
{
    OrtAllocator *allocator = NULL;
    TRITONSERVER_Error *err =
        ort_err(session->ort->api, session->ort->api->GetAllocatorWithDefaultOptions(&allocator));
    for (size_t i = 0; i < expected && !err; i++) {
        struct model_tensor *tensor = &tensors[(*count)++];
        tensor->initializer = initializer;
        err = onnxruntime_signature_read_tensor(session, list, allocator, i, tensor);
    }
    return err;
}

TRITONSERVER_Error *signature_read(struct model *model, const struct session *session)
{
    const OrtApi *api = session->ort->api;
    const struct list inputs = {api->SessionGetInputCount, api->SessionGetInputName,
                                api->SessionGetInputTypeInfo};
    const struct list defaults = {api->SessionGetOverridableInitializerCount,
                                  api->SessionGetOverridableInitializerName,
                                  api->SessionGetOverridableInitializerTypeInfo};
    const struct list outputs = {api->SessionGetOutputCount, api->SessionGetOutputName,
                                 api->SessionGetOutputTypeInfo};
    size_t input_count = 0, default_count = 0, output_count = 0;
    OrtStatus *status = inputs.count(session->handle, &input_count);
    if (!status)
        status = defaults.count(session->handle, &default_count);
    if (!status)
        status = outputs.count(session->handle, &output_count);
    if (status)
        return ort_err(api, status);

    model->inputs = calloc(input_count + default_count + 1, sizeof *model->inputs);
    model->outputs = calloc(output_count + 1, sizeof *model->outputs);
    if (!model->inputs || !model->outputs)
        return berr_no_memory();
    model->required_count = input_count;
    TRITONSERVER_Error *err = onnxruntime_signature_read_list(session, &inputs, input_count, false,
                                                              model->inputs, &model->input_count);
    if (!err)
        err = onnxruntime_signature_read_list(session, &defaults, default_count, true,
                                              model->inputs, &model->input_count);
    if (!err)
        err = onnxruntime_signature_read_list(session, &outputs, output_count, false,
                                              model->outputs, &model->output_count);
    return err;
}
