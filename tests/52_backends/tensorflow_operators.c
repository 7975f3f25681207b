/* Operations for TensorFlow, through its C interface: TripleAndOne, y = 3 x + 1. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TF_OK, TF_FLOAT = 1, MOST_DIMS = 8 };

typedef struct status TF_Status;
typedef struct tensor TF_Tensor;
typedef struct context TF_OpKernelContext;
typedef struct shapes TF_ShapeInferenceContext;
typedef struct shape TF_ShapeHandle;
typedef struct definition TF_OpDefinitionBuilder;
typedef struct kernel TF_KernelBuilder;

TF_Status *TF_NewStatus(void);
void TF_DeleteStatus(TF_Status *status);
int TF_GetCode(const TF_Status *status);
const char *TF_Message(const TF_Status *status);
int TF_NumDims(const TF_Tensor *tensor);
int64_t TF_Dim(const TF_Tensor *tensor, int index);
void *TF_TensorData(const TF_Tensor *tensor);
size_t TF_TensorByteSize(const TF_Tensor *tensor);
void TF_DeleteTensor(TF_Tensor *tensor);
void TF_GetInput(TF_OpKernelContext *context, int index, TF_Tensor **ret, TF_Status *status);
TF_Tensor *TF_AllocateOutput(TF_OpKernelContext *context, int index, int type, const int64_t *dims,
                             int rank, size_t size, TF_Status *status);
TF_ShapeHandle *TF_NewShapeHandle(void);
void TF_DeleteShapeHandle(TF_ShapeHandle *handle);
void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext *context, int index,
                                      TF_ShapeHandle *handle, TF_Status *status);
void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext *context, int index,
                                       TF_ShapeHandle *handle, TF_Status *status);
TF_OpDefinitionBuilder *TF_NewOpDefinitionBuilder(const char *name);
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder *builder, const char *spec);
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder *builder, const char *spec);
void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder *builder,
                                                     void (*infer)(TF_ShapeInferenceContext *,
                                                                   TF_Status *));
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder *builder, TF_Status *status);
TF_KernelBuilder *TF_NewKernelBuilder(const char *name, const char *device, void *(*create)(void *),
                                      void (*compute)(void *, TF_OpKernelContext *),
                                      void (*destroy)(void *));
void TF_RegisterKernelBuilder(const char *kernel, TF_KernelBuilder *builder, TF_Status *status);

static void same_shape(TF_ShapeInferenceContext *context, TF_Status *status)
{
    TF_ShapeHandle *handle = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, handle, status);
    if (TF_GetCode(status) == TF_OK)
        TF_ShapeInferenceContextSetOutput(context, 0, handle, status);
    TF_DeleteShapeHandle(handle);
}

static void *create(void *construction)
{
    (void)construction;
    return NULL;
}

static void compute(void *kernel, TF_OpKernelContext *context)
{
    (void)kernel;
    TF_Status *status = TF_NewStatus();
    TF_Tensor *x = NULL, *y = NULL;
    int64_t dims[MOST_DIMS];
    TF_GetInput(context, 0, &x, status);
    if (TF_GetCode(status) == TF_OK) {
        for (int i = 0; i < TF_NumDims(x); i++)
            dims[i] = TF_Dim(x, i);
        y = TF_AllocateOutput(context, 0, TF_FLOAT, dims, TF_NumDims(x), TF_TensorByteSize(x),
                              status);
    }
    if (TF_GetCode(status) == TF_OK) {
        const float *from = TF_TensorData(x);
        float *to = TF_TensorData(y);
        for (size_t i = 0; i < TF_TensorByteSize(x) / sizeof *from; i++)
            to[i] = from[i] * 3 + 1;
    }
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    TF_DeleteStatus(status);
}

static void destroy(void *kernel)
{
    (void)kernel;
}

__attribute__((constructor)) static void registers(void)
{
    TF_Status *status = TF_NewStatus();
    TF_OpDefinitionBuilder *definition = TF_NewOpDefinitionBuilder("TripleAndOne");
    TF_OpDefinitionBuilderAddInput(definition, "x: float");
    TF_OpDefinitionBuilderAddOutput(definition, "y: float");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(definition, same_shape);
    TF_RegisterOpDefinition(definition, status);
    if (TF_GetCode(status) == TF_OK)
        TF_RegisterKernelBuilder(
            "TripleAndOne", TF_NewKernelBuilder("TripleAndOne", "CPU", create, compute, destroy),
            status);
    if (TF_GetCode(status) != TF_OK)
        fprintf(stderr, "operators: %s\n", TF_Message(status));
    TF_DeleteStatus(status);
}
