#include "model/config_platform.h"

#include "model/datatype.h"

#include <string.h>

#define BIT(type) (1u << DATATYPE_##type)
#define ALL       (~0u)
/* The specification's table does not list BF16, nor FP16 and strings in PyTorch, because they
 * are newer. */
#define TENSORRT (BIT(BOOL) | BIT(INT8) | BIT(INT32) | BIT(FP16) | BIT(FP32) | BIT(BF16))
#define CAFFE2                                                                                 \
    (BIT(BOOL) | BIT(UINT8) | BIT(UINT16) | BIT(INT8) | BIT(INT16) | BIT(INT32) | BIT(INT64) | \
     BIT(FP16) | BIT(FP32) | BIT(FP64))
#define PYTORCH                                                                              \
    (BIT(BOOL) | BIT(UINT8) | BIT(INT8) | BIT(INT16) | BIT(INT32) | BIT(INT64) | BIT(FP16) | \
     BIT(FP32) | BIT(FP64) | BIT(BF16) | BIT(BYTES))

/* source: spec/model_repository.txt (names of definitions), spec/model_configuration.txt
 * (platforms, table of datatypes) */
static const struct config_platform rows[] = {
    {"tensorflow_savedmodel", "tensorflow", "model.savedmodel", ALL, true, 'd'},
    {"tensorflow_graphdef", "tensorflow", "model.graphdef", ALL, true, 'f'},
    {"tensorrt_plan", "tensorrt", "model.plan", TENSORRT, true, 'f'},
    {"onnxruntime_onnx", "onnxruntime", "model.onnx", ALL, true, 'e'},
    {"", "openvino", "model.xml", ALL, true, 'e'},
    {"pytorch_libtorch", "pytorch", "model.pt", PYTORCH, true, 'f'},
    {"torch_aoti", "pytorch", "model.pt2", PYTORCH, true, 'f'},
    {"", "python", "model.py", ALL, true, 'e'},
    {"caffe2_netdef", "onnxruntime", "model.netdef", CAFFE2, false, 'f'},
    {"custom", "custom", "libcustom.so", ALL, false, 'f'},
};

const struct config_platform *config_platform_at(size_t i)
{
    return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

const struct config_platform *config_platform_find(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (*name && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct config_platform *config_platform_of_backend(const char *backend)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].backend, backend) == 0)
            return &rows[i];
    return NULL;
}
