#pragma once
/* Options of the rate limiter and of host policies: --rate-limit, --rate-limit-resource,
 * --host-policy. */
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

/* The available count of a resource. */
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

/* options_limits_set - set one of these options.
 * value   borrowed as long as *o lives. If a resource is given twice for one device, the smaller
 *         count is used; if a setting of a policy is given twice, the later value
 * errors  INVALID_ARG that names the option, the value and the allowed values; UNSUPPORTED for
 *         an unknown setting of a policy */
struct err *options_limits_set(const struct options_row *row, const char *value, struct options *o);
