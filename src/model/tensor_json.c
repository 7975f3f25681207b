#include "model/tensor_json.h"

bool tensor_json_type(enum datatype t, struct json_tensor_type *ret)
{
    switch (t) {
    case DATATYPE_BOOL:
        ret->kind = JSON_TENSOR_BOOL;
        break;
    case DATATYPE_UINT8:
    case DATATYPE_UINT16:
    case DATATYPE_UINT32:
    case DATATYPE_UINT64:
        ret->kind = JSON_TENSOR_UINT;
        break;
    case DATATYPE_INT8:
    case DATATYPE_INT16:
    case DATATYPE_INT32:
    case DATATYPE_INT64:
        ret->kind = JSON_TENSOR_INT;
        break;
    case DATATYPE_FP32:
    case DATATYPE_FP64:
        ret->kind = JSON_TENSOR_REAL;
        break;
    case DATATYPE_BYTES:
        ret->kind = JSON_TENSOR_BYTES;
        break;
    case DATATYPE_FP16:
        ret->kind = JSON_TENSOR_FP16;
        break;
    case DATATYPE_BF16:
        ret->kind = JSON_TENSOR_BF16;
        break;
    case DATATYPE_INVALID:
    case DATATYPE_COUNT:
        return false;
    }
    ret->width = (uint8_t)datatype_bytes(t);
    ret->base64 = false;
    return true;
}
