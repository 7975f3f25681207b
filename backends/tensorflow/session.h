#pragma once

#include "runtime.h"

struct model;

/* A graph that TensorFlow runs. Several instances may run it at the same time. */
struct session {
    TF_Graph *graph;
    TF_Session *handle;
    TF_Output *inputs, *outputs; /* the model's tensors in this graph, in the model's order */
    int32_t place;               /* a GPU, or OPTIONS_ON_CPU or OPTIONS_BY_MODEL */

    /* Guarded by the model's lock: */
    int64_t users; /* number of instances */
    struct session *next;
};

/* session_open - read the model's file into a graph and a session.
 * place        a GPU, or OPTIONS_ON_CPU or OPTIONS_BY_MODEL
 * ret_session  owned by the caller: session_close; call session_bind before using it
 * ret_meta     NULL, or a SavedModel's MetaGraphDef, owned by the caller: TF_DeleteBuffer
 * errors       naming the model */
TRITONSERVER_Error *session_open(const struct model *model, int32_t place,
                                 struct session **ret_session, TF_Buffer **ret_meta);

/* session_import - add a GraphDef to the session's graph, on the session's GPU if it has one.
 * Operations that name a device keep it. */
TRITONSERVER_Error *session_import(const struct model *model, const TF_Buffer *content,
                                   struct session *session);

/* session_bind - find the model's tensors in the graph and run its initial operations.
 * errors  a tensor or an operation does not exist */
TRITONSERVER_Error *session_bind(const struct model *model, struct session *session);

/* session_close - NULL and half-built ones are allowed. */
void session_close(struct session *session);

/* session_find - find a tensor of the graph.
 * source    "operation" or "operation:result"
 * ret_at    written on success
 * returns   false if it does not exist */
bool session_find(const struct session *session, const char *source, TF_Output *ret_at);
