#pragma once
/* One execution of a model that is a function. */
#include "function.h"

#include "triton/core/tritonbackend.h"

struct execution {
    struct function *function;
    TRITONBACKEND_ModelInstance *instance;
    TRITONBACKEND_Request **requests;
    uint32_t count;
    /* Asked when the function has returned, with the GIL; false: the requests were answered by
     * somebody else. NULL = they were not. */
    bool (*may_answer)(void *arg);
    /* Called before requests are released, without the GIL; may be NULL. */
    void (*before_release)(void *arg);
    void *arg;
};

/* execute_batch - answer requests with what the function returns, and release them. It gets a list
 * of dicts of arrays and returns a list: for each request a dict of arrays, a pair (code, message),
 * or an iterator of such, whose responses are sent one by one. Arrays of large
 * inputs are views: a request is released when none of its own is left. Without the GIL. */
void execute_batch(const struct execution *x);

/* execute_refuse - answer a request with an error, which stays the caller's. It is not released. */
void execute_refuse(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
                    TRITONSERVER_Error *e);
