#include "server/options/options_limits.h"

#include "server/options/options_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct err *options_limits_too_many(const struct options_row *row, int most)
{
    return err_new(STATUS_INVALID_ARG, "option --%s: at most %d can be given", row->name, most);
}

static struct err *set_mode(const struct options_row *row, const char *value, bool *field)
{
    bool on = strcasecmp(value, "execution_count") == 0;
    if (!on && strcasecmp(value, "off") != 0)
        return options_value_bad(row, value, "off or execution_count");
    *field = on;
    return NULL;
}

/* Reads a number in [least, INT64_MAX] that must end at `stop`. */
static bool options_limits_read_number(const char *text, const char *stop, long long least,
                                       long long *ret)
{
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    bool begins_well = (*text >= '0' && *text <= '9') || (*text == '-' && least < 0);
    return begins_well && end == stop && !errno && *ret >= least;
}

/* <name>:<count>[:<device>] */
static struct err *add_resource(const struct options_row *row, const char *value, struct options *o)
{
    struct options_limits *l = &o->limits;
    const char *end = value + strlen(value);
    const char *first = strchr(value, ':');
    const char *second = first ? strchr(first + 1, ':') : NULL;
    long long count = 0;
    long long device = OPTIONS_EVERY_DEVICE;
    if (!first || !options_limits_read_number(first + 1, second ? second : end, 0, &count) ||
        (second && !options_limits_read_number(second + 1, end, OPTIONS_EVERY_DEVICE, &device)) ||
        device > INT32_MAX)
        return options_value_bad(row, value, row->value);
    struct options_resource s = {
        .name = options_value_keep(o, value, (size_t)(first - value)),
        .count = (uint64_t)count,
        .device = (int32_t)device,
    };
    for (size_t i = 0; i < l->resource_count; i++) {
        struct options_resource *there = &l->resources[i];
        if (there->device == s.device && strcmp(there->name, s.name) == 0) {
            there->count = there->count < s.count ? there->count : s.count;
            return NULL;
        }
    }
    if (l->resource_count == OPTIONS_MAX_RATE_RESOURCES)
        return options_limits_too_many(row, OPTIONS_MAX_RATE_RESOURCES);
    l->resources[l->resource_count++] = s;
    return NULL;
}

/* Adds <policy>,<setting>=<value>. The value is checked when an instance with the policy is
 * made. */
static struct err *add_policy(const struct options_row *row, const char *value, struct options *o)
{
    struct options_limits *l = &o->limits;
    const char *comma = strchr(value, ',');
    const char *equals = comma ? strchr(comma, '=') : NULL;
    if (!equals || comma == value || equals == comma + 1 || !equals[1])
        return options_value_bad(row, value, row->value);
    struct host_policy_setting s = {
        .policy = options_value_keep(o, value, (size_t)(comma - value)),
        .key = options_value_keep(o, comma + 1, (size_t)(equals - comma - 1)),
        .value = equals + 1,
    };
    struct err *e = host_policy_check_key(s.key);
    if (e)
        return err_wrap(e, "option --%s", row->name);
    for (size_t i = 0; i < l->policy_count; i++)
        if (strcmp(l->policies[i].policy, s.policy) == 0 &&
            strcmp(l->policies[i].key, s.key) == 0) {
            l->policies[i] = s;
            return NULL;
        }
    if (l->policy_count == OPTIONS_MAX_HOST_POLICIES)
        return options_limits_too_many(row, OPTIONS_MAX_HOST_POLICIES);
    l->policies[l->policy_count++] = s;
    return NULL;
}

struct err *options_limits_set(const struct options_row *row, const char *value, struct options *o)
{
    if (row->kind == OPTIONS_KIND_RATE_LIMIT)
        return set_mode(row, value, &o->limits.rates);
    return row->kind == OPTIONS_KIND_RATE_RESOURCE ? add_resource(row, value, o)
                                                   : add_policy(row, value, o);
}
