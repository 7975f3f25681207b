#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "model.h"
#include "stub.h"
#include "triton/core/tritonbackend.h"

/* Whoever has a stub: the server's side of all that a model does. An instance has one for its life,
 * and a new stub in it when the old one has died. */

struct batch;
struct begun;
struct nested;
struct metrics;
struct lend;

/* A request that the stub may still send responses to. */
struct handle {
    uint64_t id;                            /* 0 = a free slot */
    TRITONBACKEND_Request *request;         /* until it is released */
    TRITONBACKEND_ResponseFactory *factory; /* once it was needed */
    bool closed;                            /* its final response was sent */
    bool dropped;                           /* nobody is left in the stub who could send one */
};

struct host {
    struct model *model;
    char *name; /* of the instance, or of the model that is completed */
    TRITONBACKEND_ModelInstance *instance;
    struct stub *stub;  /* NULL = it died and did not come back */
    uint64_t failed_ns; /* when it last did not */
    int bell;           /* of the loop that waits for a batch, of all stubs in turn */

    /* Guarded by stub->reading. */
    bool has_result, result_well;
    char *result;
    struct batch *batch; /* what is executed now */
    struct begun *begun; /* room for a batch that a loop waits for; NULL = there was none */
    struct handle *handles;
    size_t handle_count, handle_cap;
    uint64_t last_handle;
    struct metrics *metrics;
    struct lend *lend; /* inputs on a GPU; NULL = all are given on the host */
    TRITONSERVER_ResponseAllocator *allocator; /* of nested requests, once there was one */

    pthread_mutex_t lock; /* guards what follows; within stub->reading */
    pthread_cond_t idle;
    struct nested *nested; /* requests to other models that are on their way */
    size_t busy;           /* they, and calls that take their time */
};

/* host_new - start a stub for a name.
 * errors  the stub does not run */
TRITONSERVER_Error *host_new(struct model *model, const char *name, struct host **ret_host);

/* host_free - end the stub, after the model's finalize. NULL is allowed. */
void host_free(struct host *host);

/* host_lost_and_free - the same without finalize, for a model that did not come to be. */
void host_lost_and_free(struct host *host);

/* host_rename - an instance takes over the stub that completed its configuration. */
TRITONSERVER_Error *host_rename(struct host *host, const char *name);

/* host_ask - have the stub do something by texts, and wait for its end.
 * kind, id    LINK_COMPLETE, ...
 * ret_text    owned by the caller: what it told; NULL = not wanted
 * deadline_ns 0 = none
 * errors      what the model raised, as INTERNAL; the stub died */
TRITONSERVER_Error *host_ask(struct host *host, uint32_t kind, uint64_t id,
                             const char *const *texts, size_t count, uint64_t deadline_ns,
                             char **ret_text);

/* host_lost - end a stub that died or hangs, and answer all that it owed. Not under
 * stub->reading. */
void host_lost(struct host *host);

/* host_restart - start a stub anew, without the model in it. */
TRITONSERVER_Error *host_restart(struct host *host);

/* host_unhealthy - the error for who waited for a stub. */
TRITONSERVER_Error *host_unhealthy(const struct host *host, enum stub_wait why);

/* Handles of requests; under stub->reading. */

/* handle_new - returns its id; 0 = no memory */
uint64_t handle_new(struct host *host, TRITONBACKEND_Request *request);
struct handle *handle_find(struct host *host, uint64_t id); /* NULL = there is none */
void handle_free(struct handle *handle);
TRITONSERVER_Error *handle_is_cancelled(const struct handle *handle, bool *ret_cancelled);
/* handle_all_cancelled - there are requests without their final response, all of them cancelled. */
bool handle_all_cancelled(const struct host *host);
/* handle_factory - the factory of a handle, made when it is asked for first. */
TRITONSERVER_Error *handle_factory(struct handle *handle,
                                   TRITONBACKEND_ResponseFactory **ret_factory);

/* host_give - a place that a tensor had is not used any more; under stub->reading. */
void host_give(struct host *host, uint64_t place);

/* host_begin, host_end - something is on its way that needs the host. */
void host_begin(struct host *host);
void host_end(struct host *host);
