/* PyTorch in a loop; see bare.h. FILE is TorchScript of one argument and one result, which have no names. */
#include <ATen/Parallel.h>
#include <torch/script.h>

#include "bare.h"

namespace
{

struct network {
    struct bare bare;
    torch::jit::Module module;
    torch::Tensor input;
};

float run(void *argument, int sums)
{
    auto *network = static_cast<struct network *>(argument);
    torch::Tensor output = network->module.forward({network->input}).toTensor();
    return sums ? bare_sum(output.contiguous().const_data_ptr<float>(),
                           static_cast<size_t>(output.numel()))
                : 0;
}

} // namespace

int main(int count, char **arguments)
try {
    struct network network = {};
    network.bare = bare_read_arguments(count, arguments);
    at::set_num_threads(1);
    c10::InferenceMode mode;
    network.module = torch::jit::load(network.bare.file);
    network.module.eval();
    network.input = torch::from_blob(network.bare.values,
                                     at::IntArrayRef(network.bare.dims, network.bare.rank));
    bare_loop(run, &network);
} catch (const std::exception &error) {
    bare_fail("PyTorch", error.what());
}
