#pragma once
/* The instances of a version. The set is made when the version starts and is replaced as a whole
 * when only the number of instances changes. An instance that both the old and the new set ask
 * for is kept. Requests are served meanwhile and none is lost. Only one thread at a time may
 * change the set of a version. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct instances_draft;
struct model_config;
struct plugin_instance;
struct runner;
struct serve_version;

struct instances {
    struct runner **runners; /* one per instance that executes requests */
    uint32_t runner_count;
    struct plugin_instance **passive; /* instances that get no requests */
    uint32_t passive_count;
};

/* instances_prepare - make and warm up the instances that a configuration asks for and that do
 * not exist yet. Blocks.
 * config  the version's own configuration, or one that differs only in its instance groups or
 *         version policy; a reference is taken
 * errors  the backend's own, with the instance's name; nothing has changed then */
struct err *instances_prepare(struct serve_version *v, struct model_config *config,
                              struct instances_draft **ret);

/* instances_commit - make the prepared set the current one; the new configuration is shown from
 * now on. Instances that are left over get no further requests.
 * d         freed on return
 * ret_left  the instances that the version no longer needs; owned by the caller, who calls
 *           instances_free once instances_idle returns true */
void instances_commit(struct instances_draft *d, struct instances *ret_left);

/* instances_abandon - free a draft and the instances made for it; the version keeps its set.
 * NULL is fine. Blocks. */
void instances_abandon(struct instances_draft *d);

/* instances_idle - true if the instances that were left over have finished their work. They take
 * no new requests. */
bool instances_idle(struct serve_version *v, const struct instances *left);

/* instances_free - end the threads, finalise and free the instances. They must be idle, or they
 * are all instances of the version and v->stopping is set. Blocks. */
void instances_free(struct instances *set);
