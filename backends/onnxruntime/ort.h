#pragma once

#include <onnxruntime_c_api.h>
#include <pthread.h>

#include "triton/core/tritonbackend.h"

/* ONNX Runtime itself: its library and its environment. Read-only once ort_new has returned. */

/* What the command line says about the backend. */
struct ort_settings {
    int64_t default_max_batch_size;
    bool pool_given;          /* the setting enable-global-threadpool was given at all */
    bool pool_enabled;        /* its value */
    int64_t intra_op_threads; /* 0 = the usable processors */
    int64_t inter_op_threads; /* 0 = the usable processors */
};

struct ort {
    struct ort_settings settings;
    char *folder; /* where its files lie: the backend's own, or a folder within */
    const OrtApi *api;
    OrtEnv *env;
    OrtMemoryInfo *cpu; /* describes CPU memory that is not ONNX Runtime's */
    int processors;
    /* of the runtime with OpenVINO: its start, and the making of its sessions */
    pthread_mutex_t lock;
    struct ort *openvino; /* NULL until a model needs it */
};

/* ort_new - read the backend's settings, load the library and make the environment. The server
 * calls for it once, when the first model needs the backend, and lets models of other backends
 * go first meanwhile.
 * ret_ort  owned by the caller: ort_free
 * errors   INVALID_ARG for a setting that does not parse; UNAVAILABLE when there is no library
 *          that serves the interface */
TRITONSERVER_Error *ort_new(TRITONBACKEND_Backend *backend, struct ort **ret_ort);

/* ort_with_openvino - a second ONNX Runtime, which has OpenVINO as an execution provider; it
 * lies in the folder `openvino` of the backend and is loaded when the first model asks for it.
 * Caller holds ort->lock.
 * ret_ort  owned by ort
 * errors   UNAVAILABLE when it is not there, with what to do */
TRITONSERVER_Error *ort_with_openvino(struct ort *ort, struct ort **ret_ort);

/* ort_free - end the environment; NULL is allowed. The library stays mapped: its threads and
 * destructors do not survive being unmapped. No session may be left. */
void ort_free(struct ort *ort);

/* ort_err - turn a status of ONNX Runtime into an error and free it.
 * status   NULL gives NULL
 * returns  "onnx runtime error CODE: TEXT", INTERNAL */
TRITONSERVER_Error *ort_err(const OrtApi *api, OrtStatus *status);
