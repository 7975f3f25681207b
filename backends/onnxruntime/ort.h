#pragma once

#include <onnxruntime_c_api.h>
#include <pthread.h>

#include "triton/core/tritonbackend.h"

/* ONNX Runtime: its library and its environment. Read-only once ort_new has returned. */

/* The backend's settings on the command line. */
struct ort_settings {
    int64_t default_max_batch_size;
    bool pool_given;          /* the setting enable-global-threadpool was given */
    bool pool_enabled;        /* its value */
    int64_t intra_op_threads; /* 0 = the usable processors */
    int64_t inter_op_threads; /* 0 = the usable processors */
};

struct ort {
    struct ort_settings settings;
    char *folder; /* where its files lie: the backend's folder, or a folder inside it */
    const OrtApi *api;
    OrtEnv *env;
    OrtMemoryInfo *cpu; /* describes CPU memory that ONNX Runtime does not own */
    int processors;
    bool has_cuda; /* it was built with CUDA's execution provider */
    /* for the runtime with OpenVINO: held while it is loaded and while its sessions are made */
    pthread_mutex_t lock;
    struct ort *openvino; /* NULL until a model needs it */
};

/* ort_new - read the backend's settings, load the library and make the environment. The library is
 * the one that the setting `library` names; or the one in the backend's folder; or, where there is
 * none, one that the system has. The server calls it once, when the first model needs the backend.
 * ret_ort  owned by the caller: ort_free
 * errors   INVALID_ARG for an invalid setting; UNAVAILABLE if no library has the interface */
TRITONSERVER_Error *ort_new(TRITONBACKEND_Backend *backend, struct ort **ret_ort);

/* ort_with_openvino - a second ONNX Runtime that has OpenVINO as an execution provider. It lies
 * in the folder `openvino` of the backend and is loaded when the first model needs it. Caller
 * holds ort->lock.
 * ret_ort  owned by ort
 * errors   UNAVAILABLE if it is missing, with what to do */
TRITONSERVER_Error *ort_with_openvino(struct ort *ort, struct ort **ret_ort);

/* ort_has_provider - whether this ONNX Runtime was built with an execution provider. */
TRITONSERVER_Error *ort_has_provider(const struct ort *ort, const char *name, bool *ret_has);

/* ort_last_error - the last error that a runtime logged on this thread. It may be empty, and be
 * emptied. */
char *ort_last_error(void);

/* ort_free - free the environment; NULL is allowed. The library stays mapped, because its
 * threads and destructors would crash. No session may be left. */
void ort_free(struct ort *ort);

/* ort_err - make an error from a status of ONNX Runtime, and free the status.
 * status   NULL gives NULL
 * returns  "onnx runtime error CODE: TEXT", INTERNAL */
TRITONSERVER_Error *ort_err(const OrtApi *api, OrtStatus *status);
