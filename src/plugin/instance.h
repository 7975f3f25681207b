#pragma once
/* One instance of a model: the TRITONBACKEND_ModelInstance of the C ABI. Execute is called on it by one thread at a time. */
#include "base/err.h"
#include "plugin/usage.h"
#include "triton/core/tritonserver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelInstanceGroup;
struct message;
struct plugin_model;
struct request;
struct stats;

struct plugin_instance {
    uint32_t magic;
    struct plugin_model *model;
    struct stats *stats; /* what the backend reports goes here; borrowed */
    char *name;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device;
    bool passive;
    const struct Inference__ModelInstanceGroup *group; /* borrowed from the configuration */
    struct message *host_policy;                       /* {"cpu":{}} */
    bool initialized;
    void *state;        /* the backend's own */
    struct usage usage; /* memory that it holds, as the backend reports it */
};

/* instance_new - and initialize it with the backend. Blocks.
 * name   copied
 * group  what it belongs to; borrowed, lives as long as the instance
 * ret   on success
 * errors  the backend's own */
struct err *instance_new(struct plugin_model *model, struct stats *stats, const char *name,
                         TRITONSERVER_InstanceGroupKind kind, int32_t device,
                         const struct Inference__ModelInstanceGroup *group,
                         struct plugin_instance **ret);

/* instance_execute - run a batch.
 * requests  count of them; the backend's when NULL is returned, else still the caller's */
struct err *instance_execute(struct plugin_instance *i, struct request **requests, size_t count);

/* instance_free - finalize it; never while it executes. NULL is fine. Blocks. */
void instance_free(struct plugin_instance *i);

/* instance_check - the object behind an ABI handle. instance_is - whether it is one. */
struct plugin_instance *instance_check(void *handle);
bool instance_is(const void *handle);
