#pragma once
/* Host policies: names under which instances run. The command line may say on which cores and
 * with memory of which NUMA node. A policy without settings is only a name. */
#include "base/err.h"
#include "triton/core/tritonserver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelInstanceGroup;
struct cpu_bind;

/* One setting of a policy on the command line. */
struct host_policy_setting {
    const char *policy;
    const char *key; /* "cpu-cores" or "numa-node" */
    const char *value;
};

struct host_policies {
    const struct host_policy_setting *settings;
    size_t count;
};

struct host_policy;

/* host_policy_check_key - check the name of a setting.
 * errors  UNSUPPORTED, in the reference's words, for an unknown one */
struct err *host_policy_check_key(const char *key);

/* host_policy_named - make the policy of that name.
 * all  copied; NULL = no settings */
struct host_policy *host_policy_named(const struct host_policies *all, const char *name);

/* host_policy_new - make the policy of an instance: the one that its group names, else "gpu_N",
 * "cpu" or "model".
 * all  as for host_policy_named */
struct host_policy *host_policy_new(const struct host_policies *all,
                                    TRITONSERVER_InstanceGroupKind kind, int32_t device,
                                    const struct Inference__ModelInstanceGroup *group);
void host_policy_free(struct host_policy *p);

const char *host_policy_name(const struct host_policy *p);

/* host_policy_value - the value of a setting; NULL = not set. */
const char *host_policy_value(const struct host_policy *p, const char *key);

/* host_policy_binds - true if the policy binds threads to cores or a node. */
bool host_policy_binds(const struct host_policy *p);

/* host_policy_json - the policy for backends: {"NAME":{"cpu-cores":"0-3","numa-node":"0"}}; the
 * caller frees it (mem_free). */
char *host_policy_json(const struct host_policy *p, size_t *ret_len);

/* host_policy_bind - bind the calling thread to the policy for good. If the system does not
 * allow choosing NUMA nodes, a log line says so and that setting has no effect.
 * errors  in the reference's words: INVALID_ARG for invalid values, INTERNAL for cores or nodes
 *         that do not exist */
struct err *host_policy_bind(const struct host_policy *p);

/* host_policy_enter - as host_policy_bind, until cpu_bind_restore(*ret_was). *ret_was is NULL if
 * the policy binds nothing. After an error nothing has changed. */
struct err *host_policy_enter(const struct host_policy *p, struct cpu_bind **ret_was);
