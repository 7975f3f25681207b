/* TRITONSERVER_InferenceResponse functions: what a caller of the C API sees of a response. */
#include "plugin/handle.h"
#include "infer/allocator.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/labels.h"
#include "serve/version.h"

static const char type[] = "TRITONSERVER_InferenceResponse";

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseDelete(TRITONSERVER_InferenceResponse *inference_response)
{
    struct response *r = response_take(inference_response);
    if (inference_response && !r)
        return handle_invalid(type);
    response_free(r);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseError(TRITONSERVER_InferenceResponse *inference_response)
{
    const struct response *r = response_from(inference_response);
    if (!r)
        return handle_invalid(type);
    err_lend(r->error);
    return handle_error(r->error);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseModel(TRITONSERVER_InferenceResponse *inference_response,
                                    const char **model_name, int64_t *model_version)
{
    const struct response *r = response_from(inference_response);
    if (!r)
        return handle_invalid(type);
    const struct serve_version *v = version_of(r->request);
    *model_name = v->name;
    *model_version = v->number;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseId(TRITONSERVER_InferenceResponse *inference_response,
                                 const char **request_id)
{
    const struct response *r = response_from(inference_response);
    if (!r)
        return handle_invalid(type);
    *request_id = r->request->id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameterCount(TRITONSERVER_InferenceResponse *inference_response,
                                             uint32_t *count)
{
    const struct response *r = response_from(inference_response);
    if (!r)
        return handle_invalid(type);
    *count = r->params.count;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseParameter(TRITONSERVER_InferenceResponse *inference_response,
                                        const uint32_t index, const char **name,
                                        TRITONSERVER_ParameterType *param_type, const void **vvalue)
{
    const struct response *r = response_from(inference_response);
    if (!r)
        return handle_invalid(type);
    if (index >= r->params.count)
        return handle_bounds("parameters", index, r->params.count);
    const struct param *p = r->params.first;
    for (uint32_t i = 0; i < index; i++)
        p = p->next;
    *name = p->name;
    *param_type = (TRITONSERVER_ParameterType)p->type;
    bool bytes = p->type == PARAM_STRING || p->type == PARAM_BYTES;
    *vvalue = bytes ? (const void *)p->bytes.data : (const void *)&p->i;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceResponseOutputCount(TRITONSERVER_InferenceResponse *inference_response,
                                          uint32_t *count)
{
    const struct response *r = response_from(inference_response);
    if (!r)
        return handle_invalid(type);
    *count = r->output_count;
    return NULL;
}

static const struct tensor_output *output_at(const struct response *r, uint32_t index)
{
    const struct tensor_output *o = r->outputs;
    while (o && index--)
        o = o->next;
    return o;
}

TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index, const char **name,
    TRITONSERVER_DataType *datatype, const int64_t **shape, uint64_t *dim_count, const void **base,
    size_t *byte_size, TRITONSERVER_MemoryType *memory_type, int64_t *memory_type_id, void **userp)
{
    const struct response *r = response_from(inference_response);
    if (!r)
        return handle_invalid(type);
    const struct tensor_output *o = output_at(r, index);
    if (!o)
        return handle_bounds("outputs", index, r->output_count);
    *name = o->name;
    *datatype = (TRITONSERVER_DataType)o->datatype;
    *shape = o->shape;
    *dim_count = o->rank;
    *base = o->data;
    *byte_size = o->byte_size;
    *memory_type = (TRITONSERVER_MemoryType)o->memory;
    *memory_type_id = o->device;
    *userp = allocator_userp(o);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_InferenceResponseOutputClassificationLabel(
    TRITONSERVER_InferenceResponse *inference_response, const uint32_t index,
    const size_t class_index, const char **label)
{
    const struct response *r = response_from(inference_response);
    if (!r)
        return handle_invalid(type);
    const struct tensor_output *o = output_at(r, index);
    if (!o)
        return handle_bounds("outputs", index, r->output_count);
    const struct labels *labels = version_labels(version_of(r->request), o->name);
    *label = labels ? labels_get(labels, class_index) : NULL;
    return NULL;
}
