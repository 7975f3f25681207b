#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <memory>
#include <string>
#include <vector>

/* Limits of trees of tensors: of those that a package describes, and of results. */
enum { TREE_MOST_DEPTH = 64, TREE_MOST_VALUES = 65536 };

/* A package of AOTInductor: a model that was compiled to a library. C++ for libtorch.cc alone;
 * what fails is an exception. */
class package
{
  public:
    /* Unpacks the file to a directory of its own under /tmp, which lasts as long as the object,
     * and loads the library in it, which was compiled for a kind of device. */
    package(const std::string &path, at::Device device);

    /* The names of the tensors, in the order of run: ARGS[0], KWARGS[key], RESULT[1][key]. */
    std::vector<std::string> inputs, outputs;

    /* Any thread; calls at the same time take turns.
     * arguments  nobody else refers to them */
    std::vector<at::Tensor> run(const std::vector<at::Tensor> &arguments);

  private:
    std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader;
};
