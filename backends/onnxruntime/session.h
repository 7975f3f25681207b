#pragma once

#include "accelerators.h"
#include "model.h"

/* A model's sessions: its graph, made for one device. On the CPU all instances share one. On GPUs
 * each instance has its own, which works on a stream of its own. */
struct session {
    OrtSession *handle;
    struct ort *ort; /* what made it: with OpenVINO another one */
    unsigned users;  /* instances that share it, on the CPU; guarded by the model's lock */
    /* Only on a GPU: */
    struct bcuda *cuda;          /* NULL = on the CPU */
    struct accelerators_gpu gpu; /* what it was made with */
    OrtMemoryInfo *memory;       /* of that GPU */
    OrtAllocator *allocator;     /* the session's own, of that memory */
};

/* session_read - a session to read the model's tensors from: on the CPU, or on the GPU of the first
 * instance if all are on GPUs and this ONNX Runtime has CUDA.
 * ret_session  owned by the model, until instances take and give sessions */
TRITONSERVER_Error *session_read(struct model *model, const struct session **ret_session);

/* session_take - the session of an instance; several threads may take at once.
 * ret_session  owned by the model: session_give
 * errors       naming the model */
TRITONSERVER_Error *session_take(struct model *model, TRITONBACKEND_ModelInstance *handle,
                                 struct session **ret_session);

/* session_give - nothing runs in it; NULL is allowed. */
void session_give(struct model *model, struct session *session);

/* session_check - before a run on a GPU: errors if its stream is not the session's any more. */
TRITONSERVER_Error *session_check(const struct session *session);

/* session_fini - free what the model kept; no instance is left. */
void session_fini(struct model *model);
