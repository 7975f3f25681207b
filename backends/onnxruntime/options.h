#pragma once

#include <yyjson.h>

#include "accelerators.h"
#include "ort.h"

/* options_new - make the session options for a model's configuration.
 * ort          started
 * config       root of the model's configuration
 * gpu          where the session computes; NULL = on the CPU
 * ret_options  owned by the caller: ReleaseSessionOptions
 * errors       INVALID_ARG for a parameter that does not parse, or that leads to files of the
 *              server; as accelerators_add
 *
 * optimization.graph.level      0 all, -1 basic, 1 basic and extended, 2 none
 * parameters (string_value):
 *   intra_op_thread_count       threads inside an operator; 0 = the usable processors
 *   inter_op_thread_count       threads across operators; 0 = the usable processors
 *   execution_mode              0 sequential, 1 parallel
 *   enable_mem_arena            0 or 1
 *   enable_mem_pattern          0 or 1
 *   session.*                   passed to ONNX Runtime unchanged, but for names of files
 * A model that sets neither thread count and runs sequentially shares the process's pool. */
TRITONSERVER_Error *options_new(const struct ort *ort, yyjson_val *config,
                                const struct accelerators_gpu *gpu,
                                OrtSessionOptions **ret_options);

/* options_run_new - make the run options of a model: the parameters memory.*, such as
 * memory.enable_memory_arena_shrinkage, passed on unchanged.
 * ret_options  owned by the caller: ReleaseRunOptions */
TRITONSERVER_Error *options_run_new(const struct ort *ort, yyjson_val *config,
                                    OrtRunOptions **ret_options);
