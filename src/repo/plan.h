#pragma once
/* What to do to get from the versions that serve to those that shall serve. Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan_have {
    int64_t number;
    uint64_t stamp; /* of its files when it was loaded */
};

struct plan_want {
    int64_t number;
    uint64_t stamp; /* of its files now */
};

enum plan_action {
    PLAN_LOAD, /* it does not serve */
    PLAN_SWAP, /* it serves, and changed: load it beside the old one, then replace that */
    PLAN_KEEP, /* it serves, unchanged */
};

/* plan_version - what to do for one version that shall serve.
 * have   what serves, ascending
 * again  what lies beside the versions changed too, or the client says so: nothing is kept */
enum plan_action plan_version(const struct plan_have *have, size_t have_count,
                              const struct plan_want *want, bool again);

/* plan_drops - whether a version that serves shall serve no more.
 * want  ascending */
bool plan_drops(const struct plan_want *want, size_t want_count, int64_t number);
