#pragma once
/* What to do to get from the versions that serve to those that shall serve. Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelConfig;

struct plan_have {
    int64_t number;
    uint64_t stamp; /* of its files when it was loaded */
};

struct plan_want {
    int64_t number;
    uint64_t stamp; /* of its files now */
};

enum plan_action {
    PLAN_LOAD,   /* it does not serve */
    PLAN_SWAP,   /* it serves, and changed: load it beside the old one, then replace that */
    PLAN_RESIZE, /* it serves, and only its instances change: they do so beneath it */
    PLAN_KEEP,   /* it serves, unchanged */
};

/* What changed beside the versions: the configuration, and what lies next to it. */
enum plan_change {
    PLAN_SAME,
    /* instance groups of the configuration, or which versions it picks; nothing else */
    PLAN_GROUPS,
    PLAN_ANY, /* anything else, or the client says so: nothing is kept */
};

/* plan_compare - what changed from one configuration to another, by what they mean: what is
 * written out that is so anyway changes nothing.
 * name  of the model */
enum plan_change plan_compare(const struct Inference__ModelConfig *was,
                              const struct Inference__ModelConfig *now, const char *name);

/* plan_version - what to do for one version that shall serve.
 * have    what serves, ascending
 * change  beside the versions */
enum plan_action plan_version(const struct plan_have *have, size_t have_count,
                              const struct plan_want *want, enum plan_change change);

/* plan_drops - whether a version that serves shall serve no more.
 * want  ascending */
bool plan_drops(const struct plan_want *want, size_t want_count, int64_t number);
