#pragma once

#include <stdbool.h>
#include <yyjson.h>

#include "ort.h"

/* What a session computes with beside ONNX Runtime's own code for CPUs: its execution providers
 * for CUDA, TensorRT and OpenVINO. */

/* Where a session on a GPU computes. */
struct accelerators_gpu {
    int32_t device;
    void *stream; /* CUstream of that GPU; it has to outlive the session */
};

/* accelerators_add - add the execution providers that a model's configuration asks for, the first
 * of its list first. On a GPU: those of `gpu_execution_accelerator`, `tensorrt` and `cuda`, and
 * CUDA behind them in any case. On the CPU: `openvino` of `cpu_execution_accelerator`.
 * gpu      NULL = the CPU
 * errors   INVALID_ARG for one that is not known, or with a parameter that is not taken;
 *          UNSUPPORTED for one that this ONNX Runtime does not have; otherwise ONNX Runtime's,
 *          with the library that it misses */
TRITONSERVER_Error *accelerators_add(const struct ort *ort, yyjson_val *config,
                                     const struct accelerators_gpu *gpu,
                                     OrtSessionOptions *options);

/* accelerators_want_openvino - true if a model's configuration asks for the accelerator `openvino`,
 * which a separate runtime has. */
bool accelerators_want_openvino(yyjson_val *config);
