/* OpenVINO in a loop; see bare.h. */
#include <openvino/c/openvino.h>

#include "bare.h"

struct network {
    struct bare bare;
    ov_infer_request_t *request;
};

static void must(ov_status_e status)
{
    if (status != OK)
        bare_fail("OpenVINO", ov_get_error_info(status));
}

static float run(void *argument, int sums)
{
    struct network *network = argument;
    must(ov_infer_request_infer(network->request));
    if (!sums)
        return 0;
    ov_tensor_t *output;
    size_t count;
    void *values;
    must(ov_infer_request_get_tensor(network->request, network->bare.output, &output));
    must(ov_tensor_get_size(output, &count));
    must(ov_tensor_data(output, &values));
    float sum = bare_sum(values, count);
    ov_tensor_free(output);
    return sum;
}

int main(int count, char **arguments)
{
    struct network network = {.bare = bare_read_arguments(count, arguments)};
    ov_core_t *core;
    ov_compiled_model_t *compiled;
    ov_shape_t shape;
    ov_tensor_t *input;
    must(ov_core_create(&core));
    must(ov_core_compile_model_from_file(core, network.bare.file, "CPU", 6, &compiled,
                                         "INFERENCE_NUM_THREADS", "1", "NUM_STREAMS", "1",
                                         "EXECUTION_MODE_HINT", "ACCURACY"));
    must(ov_compiled_model_create_infer_request(compiled, &network.request));
    must(ov_shape_create((int64_t)network.bare.rank, network.bare.dims, &shape));
    must(ov_tensor_create_from_host_ptr(F32, shape, network.bare.values, &input));
    must(ov_infer_request_set_tensor(network.request, network.bare.input, input));
    bare_loop(run, &network);
}
