#pragma once
/* The repository agents that a model's configuration names. They see the model's directory
 * before it is loaded, may refuse it or replace it by another one, and are told how the load
 * ends. An agent's library is initialized for its first model and finalized after its last. All
 * calls here block as long as the agents take; never make them under a lock.
 *
 * The calls of one load, in this order: LOAD of each agent; then LOAD_COMPLETE or LOAD_FAIL of
 * each in reverse. After LOAD_COMPLETE, once no version serves: UNLOAD of each; once all
 * versions are freed: UNLOAD_COMPLETE of each in reverse. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct agents;
struct agents_set;
struct source;
struct source_look;

/* agents_new - make the agents of a server. directory: where they lie, each in a directory with
 * its name; borrowed. */
struct agents *agents_new(const char *directory);

/* agents_free - free them; no set is left. NULL is fine. */
void agents_free(struct agents *a);

/* agents_each - call fn with each loaded agent, under a lock; fn must not load agents. */
typedef void agents_each_fn(void *arg, const char *name, const char *path);
void agents_each(struct agents *a, agents_each_fn *fn, void *arg);

/* agents_wanted - true if a configuration names agents. */
bool agents_wanted(const struct Inference__ModelConfig *proto);

/* agents_stamp - the stamp of all files of a model, which agents may look at: the place where
 * agents put a model does not show whether the model changed. If the model lies in a store, its
 * files are fetched.
 * look  a look at the source */
struct err *agents_stamp(struct source *source, const struct source_look *look, uint64_t *ret);

/* agents_take - call LOAD of the agents that a configuration names.
 * config_name  as local_read_config
 * source       where the model lies. On success *source is replaced by the place where the last
 *              agent put the model; the new source keeps the old one
 * errors       of an agent, or the reason why it cannot be loaded. The agents that were called
 *              have been told of the failure */
struct err *agents_take(struct agents *a, const struct Inference__ModelConfig *proto,
                        const char *config_name, struct source **source);

/* agents_loaded, agents_failed, agents_unload - call LOAD_COMPLETE, LOAD_FAIL, UNLOAD. Errors of
 * agents are logged. s may be NULL. */
void agents_loaded(struct agents_set *s);
void agents_failed(struct agents_set *s);
void agents_unload(struct agents_set *s);

/* agents_end - the model is gone: make the calls that are still missing, and release the agents.
 * NULL is fine. */
void agents_end(struct agents_set *s);
