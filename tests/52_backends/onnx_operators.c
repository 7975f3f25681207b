/* Operators for ONNX Runtime: TripleAndOne of the domain nereid.test, y = 3 x + 1. */
#include <onnxruntime_c_api.h>

static const OrtApi *api;
static OrtCustomOpDomain *domain; /* as long as the library is loaded */

static const char *ORT_API_CALL get_name(const OrtCustomOp *op)
{
    (void)op;
    return "TripleAndOne";
}

static const char *ORT_API_CALL get_provider(const OrtCustomOp *op)
{
    (void)op;
    return NULL; /* on CPU */
}

static ONNXTensorElementDataType ORT_API_CALL get_type(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

static size_t ORT_API_CALL get_count(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL get_characteristic(const OrtCustomOp *op,
                                                                            size_t index)
{
    (void)op, (void)index;
    return INPUT_OUTPUT_REQUIRED;
}

static OrtMemType ORT_API_CALL get_memory(const OrtCustomOp *op, size_t index)
{
    (void)op, (void)index;
    return OrtMemTypeDefault;
}

static void *ORT_API_CALL create(const OrtCustomOp *op, const OrtApi *given,
                                 const OrtKernelInfo *info)
{
    (void)op, (void)given, (void)info;
    static int kernel;
    return &kernel;
}

static void ORT_API_CALL compute(void *kernel, OrtKernelContext *context)
{
    (void)kernel;
    const OrtValue *x = NULL;
    OrtValue *y = NULL;
    OrtTensorTypeAndShapeInfo *info = NULL;
    int64_t dims[8];
    size_t rank = 0, count = 0;
    void *from = NULL, *to = NULL;
    OrtStatus *status = api->KernelContext_GetInput(context, 0, &x);
    if (!status)
        status = api->GetTensorTypeAndShape(x, &info);
    if (!status)
        status = api->GetDimensionsCount(info, &rank);
    if (!status)
        status = api->GetDimensions(info, dims, rank);
    if (!status)
        status = api->GetTensorShapeElementCount(info, &count);
    if (!status)
        status = api->KernelContext_GetOutput(context, 0, dims, rank, &y);
    if (!status)
        status = api->GetTensorMutableData((OrtValue *)x, &from);
    if (!status)
        status = api->GetTensorMutableData(y, &to);
    for (size_t i = 0; !status && i < count; i++)
        ((float *)to)[i] = ((const float *)from)[i] * 3 + 1;
    api->ReleaseTensorTypeAndShapeInfo(info);
    if (status)
        api->ReleaseStatus(status);
}

static void ORT_API_CALL destroy(void *kernel)
{
    (void)kernel;
}

static const OrtCustomOp operator_ = {
    .version = ORT_API_VERSION,
    .CreateKernel = create,
    .GetName = get_name,
    .GetExecutionProviderType = get_provider,
    .GetInputType = get_type,
    .GetInputTypeCount = get_count,
    .GetOutputType = get_type,
    .GetOutputTypeCount = get_count,
    .KernelCompute = compute,
    .KernelDestroy = destroy,
    .GetInputCharacteristic = get_characteristic,
    .GetOutputCharacteristic = get_characteristic,
    .GetInputMemoryType = get_memory,
};

__attribute__((destructor)) static void unloaded(void)
{
    if (domain)
        api->ReleaseCustomOpDomain(domain);
}

OrtStatus *ORT_API_CALL RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base)
{
    OrtStatus *status = NULL;
    api = base->GetApi(ORT_API_VERSION);
    if (!domain) {
        status = api->CreateCustomOpDomain("nereid.test", &domain);
        if (!status)
            status = api->CustomOpDomain_Add(domain, &operator_);
    }
    return status ? status : api->AddCustomOpDomain(options, domain);
}
