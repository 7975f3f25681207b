#pragma once
/* Host policies: names that instances run under, and what the command line says of each: on
 * which cores, with memory of which NUMA node. A policy that nothing was said of is only a name. */
#include "base/err.h"
#include "triton/core/tritonserver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelInstanceGroup;
struct cpu_bind;

/* What the command line says of the policies. */
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

/* host_policy_check_key - errors: UNSUPPORTED, in the reference's words, for a setting that
 * there is not. */
struct err *host_policy_check_key(const char *key);

/* host_policy_new - the policy of an instance: the one that its group names, else "gpu_N", "cpu"
 * or "model".
 * all  copied; NULL = nothing was said of any */
struct host_policy *host_policy_new(const struct host_policies *all,
                                    TRITONSERVER_InstanceGroupKind kind, int32_t device,
                                    const struct Inference__ModelInstanceGroup *group);
void host_policy_free(struct host_policy *p);

const char *host_policy_name(const struct host_policy *p);

/* host_policy_value - what was said of it; NULL = nothing. */
const char *host_policy_value(const struct host_policy *p, const char *key);

/* host_policy_binds - whether threads under it are bound to anything. */
bool host_policy_binds(const struct host_policy *p);

/* host_policy_json - as backends read it: {"NAME":{"cpu-cores":"0-3","numa-node":"0"}}; the
 * caller's (mem_free). */
char *host_policy_json(const struct host_policy *p, size_t *ret_len);

/* host_policy_bind - the calling thread runs under it from now on. Where the system lets nobody
 * choose NUMA nodes, a line of the log says so, and that setting does nothing.
 * errors  in the reference's words: INVALID_ARG for values that are none, INTERNAL for cores or
 *         nodes that are not there */
struct err *host_policy_bind(const struct host_policy *p);

/* host_policy_enter - the same until cpu_bind_restore(*ret_was), NULL for a policy that binds
 * nothing; errors leave things as they were. */
struct err *host_policy_enter(const struct host_policy *p, struct cpu_bind **ret_was);
