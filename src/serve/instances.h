#pragma once
/* The instances of a version, a set that is replaced as a whole: made at the start, and again
 * when only the number of instances changes. An instance that both sets ask for stays as it is;
 * requests go on meanwhile, and none is lost. One thread at a time changes the set of a version. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct instances_draft;
struct model_config;
struct plugin_instance;
struct runner;
struct serve_version;

struct instances {
    struct runner **runners; /* one an instance that requests are scheduled on */
    uint32_t runner_count;
    struct plugin_instance **passive; /* instances that get no requests */
    uint32_t passive_count;
};

/* instances_prepare - make the instances that a configuration asks for and that are not there
 * yet, and warm them. Blocks.
 * config  the version's own, or one that differs from it in its instance groups or version
 *         policy alone; a reference is taken
 * errors  the backend's own, with the instance's name; nothing was changed then */
struct err *instances_prepare(struct serve_version *v, struct model_config *config,
                              struct instances_draft **ret);

/* instances_commit - put them in place; the configuration is shown from now on. What is left
 * over gets no further requests.
 * d         gone on return
 * ret_left  what the version has no use for any more; the caller's: instances_idle, then
 *           instances_free */
void instances_commit(struct instances_draft *d, struct instances *ret_left);

/* instances_abandon - free what was made; nothing changes. NULL is fine. Blocks. */
void instances_abandon(struct instances_draft *d);

/* instances_idle - whether instances that were left over have finished what they were doing;
 * they take nothing new. */
bool instances_idle(struct serve_version *v, const struct instances *left);

/* instances_free - end the threads, finalise and free; idle, or all of them with v->stopping
 * set. Blocks. */
void instances_free(struct instances *set);
