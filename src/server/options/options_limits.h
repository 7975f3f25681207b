#pragma once
/* Values of the options about the rate limiter and host policies: --rate-limit,
 * --rate-limit-resource, --host-policy. */
#include "base/err.h"
#include "plugin/host_policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX_RATE_RESOURCES 256
#define OPTIONS_MAX_HOST_POLICIES  256

struct options;
struct options_row;

#define OPTIONS_EVERY_DEVICE (-1)

/* How much there is of a resource. */
struct options_resource {
    const char *name;
    uint64_t count;
    int32_t device; /* or OPTIONS_EVERY_DEVICE */
};

struct options_limits {
    bool rates; /* instances wait for the resources that their groups name */
    struct options_resource resources[OPTIONS_MAX_RATE_RESOURCES];
    size_t resource_count;
    struct host_policy_setting policies[OPTIONS_MAX_HOST_POLICIES];
    size_t policy_count;
};

/* options_limits_set - one such option.
 * value   borrowed as long as *o lives. A resource that is said twice for one device has the
 *         smaller count, a setting of a policy the later value
 * errors  INVALID_ARG that names the option, the value, and what is allowed; UNSUPPORTED for a
 *         setting of a policy that there is not */
struct err *options_limits_set(const struct options_row *row, const char *value, struct options *o);
