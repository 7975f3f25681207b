#pragma once
/* One instance of a model: the TRITONBACKEND_ModelInstance of the C ABI. Only one thread at a
 * time calls Execute on it. */
#include "base/err.h"
#include "os/clock.h"
#include "plugin/usage.h"
#include "triton/core/nereid_backend.h"

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

/* Gets the backend's reports about an instance instead of stats: used to send them to another
 * process. */
struct instance_reports {
    void (*request)(struct plugin_instance *i, const struct request *r, bool success,
                    const struct stats_compute *c);
    void (*batch)(struct plugin_instance *i, uint64_t rows, const struct stats_compute *c);
    /* outcome: of enum response_stats_outcome */
    void (*response)(struct plugin_instance *i, const struct request *r, uint32_t index,
                     int outcome, const struct response_stats_times *t);
};

/* A request that the backend gave back to be executed again. The backend may still report this
 * execution, so the data for the report is kept. */
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
    struct stats *stats; /* counts what the backend reports; borrowed */
    char *name;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device;
    bool passive;
    struct Inference__ModelInstanceGroup *group; /* owned: a copy */
    struct host_policy *policy;                  /* owned */
    struct message *host_policy;                 /* the policy as JSON, for the backend */
    /* its Initialize was called, so Finalize will be called, even if it failed (as in the
     * reference) */
    bool begun;
    bool inline_ok;      /* the backend promised that Execute, or `begin`, does not block */
    int bell;            /* rings for an execution that was begun; -1 = none is */
    void *state;         /* owned by the backend */
    void **handles;      /* room for the handles of a batch, twice */
    size_t handle_count; /* size of the batches that fit */
    struct instance_again *again; /* of the current execution; usually NULL */
    size_t again_count;
    const struct instance_reports *reports; /* usually NULL: reports go to stats */
    void *reports_to;                       /* passed to the reports */
    struct usage usage;                     /* memory that it holds, as reported by the backend */
};

/* instance_new - make an instance and let the backend initialize it, under its host policy.
 * Blocks.
 * name      copied
 * group     the group that it belongs to; copied
 * policies  the command line's settings; NULL = none
 * ret       on success
 * errors    those of the host policy; the backend's own */
struct err *instance_new(struct plugin_model *model, struct stats *stats, const char *name,
                         TRITONSERVER_InstanceGroupKind kind, int32_t device,
                         const struct Inference__ModelInstanceGroup *group,
                         const struct host_policies *policies, struct plugin_instance **ret);

/* instance_bind - the calling thread will execute only this instance: bind it to the host
 * policy. */
void instance_bind(const struct plugin_instance *i);

/* instance_execute - execute a batch.
 * requests  `count` of them. The backend owns them if NULL is returned. After an error the
 *           caller owns them again, and those that the backend released are set to NULL */
struct err *instance_execute(struct plugin_instance *i, struct request **requests, size_t count);

/* instance_begin - begin to execute a batch, which instance_look or instance_finish ends; only with
 * a bell. As instance_execute, but the requests must come again in instance_execute if it returns
 * false: `count` is then how many there still are, without those that the backend released.
 * instance_look - send what has come of it; does not block.
 * instance_finish - wait for its end. Blocks. */
bool instance_begin(struct plugin_instance *i, struct request **requests, size_t *count);
enum nereid_progress instance_look(struct plugin_instance *i);
void instance_finish(struct plugin_instance *i);

/* instance_note_again - the backend gives a request back during the calling thread's execution,
 * to have it executed again. Call it before the request is rescheduled.
 * instance_again - what was noted for a handle by the calling thread's execution on this
 * instance; NULL if nothing was. */
void instance_note_again(const void *handle, const struct request *r);
const struct instance_again *instance_again(const struct plugin_instance *i, const void *handle);

/* instance_current - the instance that the calling thread executes; NULL = none. */
struct plugin_instance *instance_current(void);

/* instance_free - finalize the instance; it must not execute now. NULL is fine. Blocks. */
void instance_free(struct plugin_instance *i);

/* instance_check - the object behind an ABI handle.
 * instance_is - true if the handle is one. */
struct plugin_instance *instance_check(void *handle);
bool instance_is(const void *handle);
