#pragma once
/* One instance of a model: the TRITONBACKEND_ModelInstance of the C ABI. Execute is called on it
 * by one thread at a time. */
#include "base/err.h"
#include "os/clock.h"
#include "plugin/usage.h"
#include "triton/core/tritonserver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelInstanceGroup;
struct host_policies;
struct host_policy;
struct message;
struct plugin_instance;
struct plugin_model;
struct request;
struct response_stats_times;
struct stats;
struct stats_compute;

/* Who hears what a backend reports about an instance, where that is not stats: another process. */
struct instance_reports {
    void (*request)(struct plugin_instance *i, const struct request *r, bool success,
                    const struct stats_compute *c);
    void (*batch)(struct plugin_instance *i, uint64_t rows, const struct stats_compute *c);
    /* outcome: of enum response_stats_outcome */
    void (*response)(struct plugin_instance *i, const struct request *r, uint32_t index,
                     int outcome, const struct response_stats_times *t);
};

/* A request that the backend gave back to have it executed again: what a report about this
 * execution needs. */
struct instance_again {
    const void *handle;
    time_ns start;
    time_ns queue_start;
    uint32_t rows;
    bool gap;
};

struct plugin_instance {
    uint32_t magic;
    struct plugin_model *model;
    struct stats *stats; /* what the backend reports goes here; borrowed */
    char *name;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device;
    bool passive;
    struct Inference__ModelInstanceGroup *group; /* owned: a copy */
    struct host_policy *policy;                  /* owned */
    struct message *host_policy;                 /* the same as JSON, for the backend */
    bool begun; /* it was initialized, be it in vain: it will be finalized, as in the reference */
    bool inline_ok;      /* its backend promises that Execute is quick and does not block */
    void *state;         /* the backend's own */
    void **handles;      /* room for the handles of a batch, twice */
    size_t handle_count; /* batches of so many fit */
    struct instance_again *again; /* of the execution under way; NULL nearly always */
    size_t again_count;
    const struct instance_reports *reports; /* NULL nearly always: stats hear it */
    void *reports_to;                       /* the reports' own */
    struct usage usage;                     /* memory that it holds, as the backend reports it */
};

/* instance_new - and initialize it with the backend, under its host policy. Blocks.
 * name      copied
 * group     what it belongs to; copied
 * policies  what the command line says of host policies; NULL = nothing
 * ret       on success
 * errors    of the host policy; the backend's own */
struct err *instance_new(struct plugin_model *model, struct stats *stats, const char *name,
                         TRITONSERVER_InstanceGroupKind kind, int32_t device,
                         const struct Inference__ModelInstanceGroup *group,
                         const struct host_policies *policies, struct plugin_instance **ret);

/* instance_bind - the calling thread executes this instance only: it runs under its host policy
 * from now on. */
void instance_bind(const struct plugin_instance *i);

/* instance_execute - run a batch.
 * requests  count of them; the backend's when NULL is returned, else still the caller's, but for
 *           those that the backend has released nevertheless: they are NULL then */
struct err *instance_execute(struct plugin_instance *i, struct request **requests, size_t count);

/* instance_note_again - the calling thread's execution gives a request back to have it executed
 * again. Before the request is.
 * instance_again - what was noted under a handle by the calling thread's execution on this
 * instance; NULL when nothing was. */
void instance_note_again(const void *handle, const struct request *r);
const struct instance_again *instance_again(const struct plugin_instance *i, const void *handle);

/* instance_current - the one that the calling thread executes; NULL = none. */
struct plugin_instance *instance_current(void);

/* instance_free - finalize it; never while it executes. NULL is fine. Blocks. */
void instance_free(struct plugin_instance *i);

/* instance_check - the object behind an ABI handle. instance_is - whether it is one. */
struct plugin_instance *instance_check(void *handle);
bool instance_is(const void *handle);
