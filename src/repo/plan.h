#pragma once
/* Decides how to get from the versions that serve to the versions that shall serve. Pure. */
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
    PLAN_LOAD, /* the version does not serve */
    /* it serves and has changed: load it beside the old one, then replace the old one */
    PLAN_SWAP,
    PLAN_RESIZE, /* it serves, and only its instances change: replace them while it serves */
    PLAN_KEEP,   /* it serves unchanged */
};

/* What changed outside the version directories: the configuration, and other files. */
enum plan_change {
    PLAN_SAME,
    /* only the instance groups or the version policy of the configuration */
    PLAN_GROUPS,
    PLAN_ANY, /* anything else, or the client asks for it: no version is kept */
};

/* plan_compare - compare two configurations by their meaning: a default that is written out is
 * not a change.
 * name  of the model */
enum plan_change plan_compare(const struct Inference__ModelConfig *was,
                              const struct Inference__ModelConfig *now, const char *name);

/* plan_version - what to do for one version that shall serve.
 * have    the versions that serve, ascending
 * change  what changed outside the version directories */
enum plan_action plan_version(const struct plan_have *have, size_t have_count,
                              const struct plan_want *want, enum plan_change change);

/* plan_drops - true if a serving version shall no longer serve.
 * want  ascending */
bool plan_drops(const struct plan_want *want, size_t want_count, int64_t number);
