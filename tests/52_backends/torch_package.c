/* The library in a package of AOTInductor, as PyTorch's compiler makes it for
 *
 *     def forward(self, x, parts, *, scale):
 *         return x + parts["b"] * scale, {"product": x * parts["b"]}
 *
 * with tensors of FP32 and dims [rows, 4]; scale is [1], or [rows, 1] with SCALES. As a compiled model, it takes no fewer
 * than LEAST and no more than MOST rows, and compares only if AOTI_RUNTIME_CHECK_INPUTS is set. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUTS = 3, OUTPUTS = 2, COLUMNS = 4 };

#define TENSOR "{\"type\": null, \"context\": null, \"children_spec\": []}"
#define PARTS \
    "{\"type\": \"builtins.dict\", \"context\": \"[\\\"b\\\"]\", \"children_spec\": [" TENSOR "]}"
#define ARGS                                                                                       \
    "{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [" TENSOR ", " PARTS \
    "]}"
#define KWARGS                                                                                   \
    "{\"type\": \"" KEYWORDS "\", \"context\": \"[\\\"scale\\\"]\", \"children_spec\": [" TENSOR \
    "]}"
#define PRODUCT                                                                             \
    "{\"type\": \"builtins.dict\", \"context\": \"[\\\"product\\\"]\", \"children_spec\": " \
    "[" TENSOR "]}"

static const char in_spec[] =
    "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [" ARGS
    ", " KWARGS "]}]";
static const char out_spec[] =
    "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [" TENSOR
    ", " PRODUCT "]}]";

struct tensor;
struct container {
    int nothing;
};

int32_t aoti_torch_dtype_float32(void);
int32_t aoti_torch_device_type_cpu(void);
int32_t aoti_torch_get_dtype(struct tensor *tensor, int32_t *ret_dtype);
int32_t aoti_torch_get_sizes(struct tensor *tensor, int64_t **ret_sizes);
int32_t aoti_torch_get_data_ptr(struct tensor *tensor, void **ret_data);
int32_t aoti_torch_delete_tensor_object(struct tensor *tensor);
int32_t aoti_torch_empty_strided(int64_t rank, const int64_t *sizes, const int64_t *strides,
                                 int32_t dtype, int32_t device, int32_t index,
                                 struct tensor **ret_tensor);

int32_t AOTInductorModelContainerCreateWithDevice(struct container **ret, size_t models,
                                                  const char *device, const char *folder)
{
    (void)models, (void)device, (void)folder;
    *ret = calloc(1, sizeof **ret);
    return 0;
}

int32_t AOTInductorModelContainerDelete(struct container *container)
{
    free(container);
    return 0;
}

static const float *data_of(struct tensor *tensor)
{
    void *data = NULL;
    aoti_torch_get_data_ptr(tensor, &data);
    return data;
}

static bool fits(struct tensor *tensor, int64_t least, int64_t most, int64_t columns)
{
    int32_t dtype = -1;
    int64_t *sizes = NULL;
    aoti_torch_get_dtype(tensor, &dtype);
    aoti_torch_get_sizes(tensor, &sizes);
    return dtype == aoti_torch_dtype_float32() && sizes[0] >= least && sizes[0] <= most &&
           (columns == 0 || sizes[1] == columns);
}

int32_t AOTInductorModelContainerRun(struct container *container, struct tensor **inputs,
                                     size_t input_count, struct tensor **outputs,
                                     size_t output_count, void *stream, void *proxy)
{
    (void)container, (void)input_count, (void)output_count, (void)stream, (void)proxy;
    const char *checks = getenv("AOTI_RUNTIME_CHECK_INPUTS");
    if (checks && *checks &&
        !(fits(inputs[0], LEAST, MOST, COLUMNS) && fits(inputs[1], LEAST, MOST, COLUMNS) &&
          fits(inputs[2], SCALES ? LEAST : 1, SCALES ? MOST : 1, SCALES))) {
        fprintf(stderr, "Error: unmatched dim value\n");
        return 1;
    }
    int64_t *sizes = NULL;
    aoti_torch_get_sizes(inputs[0], &sizes);
    const int64_t rows = sizes[0], shape[] = {rows, COLUMNS}, strides[] = {COLUMNS, 1};
    const float *x = data_of(inputs[0]), *b = data_of(inputs[1]), *scale = data_of(inputs[2]);
    for (int i = 0; i < OUTPUTS; i++)
        aoti_torch_empty_strided(2, shape, strides, aoti_torch_dtype_float32(),
                                 aoti_torch_device_type_cpu(), 0, &outputs[i]);
    float *sum = (float *)data_of(outputs[0]), *product = (float *)data_of(outputs[1]);
    for (int64_t i = 0; i < rows * COLUMNS; i++) {
        sum[i] = x[i] + b[i] * scale[SCALES ? i / COLUMNS : 0];
        product[i] = x[i] * b[i];
    }
    for (int i = 0; i < INPUTS; i++) /* they are the callee's */
        aoti_torch_delete_tensor_object(inputs[i]);
    return 0;
}

int32_t AOTInductorModelContainerGetCallSpec(struct container *container, const char **in,
                                             const char **out)
{
    (void)container;
    *in = in_spec;
    *out = out_spec;
    return 0;
}

int32_t AOTInductorModelContainerGetNumOutputs(struct container *container, size_t *ret_count)
{
    (void)container;
    *ret_count = OUTPUTS;
    return 0;
}

int32_t AOTInductorModelContainerGetNumConstants(struct container *container, size_t *ret_count)
{
    (void)container;
    *ret_count = 0;
    return 0;
}

/* What a model without weights is not asked for, but has to have. */
#define UNUSED(name)   \
    int32_t name(void) \
    {                  \
        abort();       \
    }
UNUSED(AOTInductorModelContainerGetConstantName)
UNUSED(AOTInductorModelContainerGetConstantOriginalFQN)
UNUSED(AOTInductorModelContainerGetConstantFromFolded)
UNUSED(AOTInductorModelContainerGetConstantType)
UNUSED(AOTInductorModelContainerGetConstantDtype)
UNUSED(AOTInductorModelContainerUpdateConstantBuffer)
UNUSED(AOTInductorModelContainerUpdateInactiveConstantBuffer)
UNUSED(AOTInductorModelContainerRunConstantFolding)
UNUSED(AOTInductorModelContainerSwapConstantBuffer)
UNUSED(AOTInductorModelContainerRunSingleThreaded)
UNUSED(AOTInductorModelContainerGetNumInputs)
UNUSED(AOTInductorModelContainerGetInputName)
UNUSED(AOTInductorModelContainerGetOutputName)
UNUSED(AOTInductorModelContainerCreate)
