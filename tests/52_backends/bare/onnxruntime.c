/* ONNX Runtime in a loop; see bare.h. */
#include <onnxruntime_c_api.h>

#include "bare.h"

static const OrtApi *api;

struct network {
    struct bare bare;
    OrtSession *session;
    OrtValue *input;
};

static void must(OrtStatus *status)
{
    if (status)
        bare_fail("ONNX Runtime", api->GetErrorMessage(status));
}

static float run(void *argument, int sums)
{
    struct network *network = argument;
    OrtValue *output = NULL;
    must(api->Run(network->session, NULL, &network->bare.input,
                  (const OrtValue *const *)&network->input, 1, &network->bare.output, 1, &output));
    float sum = 0;
    if (sums) {
        OrtTensorTypeAndShapeInfo *info;
        size_t count;
        float *values;
        must(api->GetTensorTypeAndShape(output, &info));
        must(api->GetTensorShapeElementCount(info, &count));
        must(api->GetTensorMutableData(output, (void **)&values));
        sum = bare_sum(values, count);
        api->ReleaseTensorTypeAndShapeInfo(info);
    }
    api->ReleaseValue(output);
    return sum;
}

int main(int count, char **arguments)
{
    struct network network = {.bare = bare_read_arguments(count, arguments)};
    api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtMemoryInfo *memory;
    must(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bare", &env));
    must(api->CreateSessionOptions(&options));
    must(api->SetIntraOpNumThreads(options, 1));
    must(api->CreateSession(env, network.bare.file, options, &network.session));
    must(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    must(api->CreateTensorWithDataAsOrtValue(memory, network.bare.values, network.bare.size,
                                             network.bare.dims, network.bare.rank,
                                             ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &network.input));
    bare_loop(run, &network);
}
