#pragma once
/* The repository agents that the configuration of a model names: they see its directory before
 * it is loaded, may refuse it or put another in its place, and hear what becomes of it. An
 * agent's library is initialized for its first model and finalized after its last. Everything
 * here blocks for as long as agents take; never under a lock.
 *
 * The calls of one load, in this order: LOAD of each agent; then LOAD_COMPLETE, or LOAD_FAIL, of
 * each in reverse; after LOAD_COMPLETE, once none of the versions serves, UNLOAD of each; when
 * they are gone UNLOAD_COMPLETE of each in reverse. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct agents;
struct agents_set;
struct source;
struct source_look;

/* agents_new - of a server. directory: where they lie, each in a directory of its name;
 * borrowed. */
struct agents *agents_new(const char *directory);

/* agents_free - no set of it is left. NULL is fine. */
void agents_free(struct agents *a);

/* agents_each - call fn with each agent that is loaded, under a lock: it may not load any. */
typedef void agents_each_fn(void *arg, const char *name, const char *path);
void agents_each(struct agents *a, agents_each_fn *fn, void *arg);

/* agents_wanted - whether a configuration names any. */
bool agents_wanted(const struct Inference__ModelConfig *proto);

/* agents_stamp - of all of a model, which agents may look at: where they put it tells nothing of
 * whether it changed. Its files are there afterwards, also those of a model in a store.
 * look  of the source */
struct err *agents_stamp(struct source *source, const struct source_look *look, uint64_t *ret);

/* agents_take - have the agents of a configuration look at a model (LOAD).
 * config_name  as local_read_config
 * source       where the model lies; on success *source is replaced by where the last agent put
 *              it, which keeps the former one
 * errors       what an agent says, or why it cannot be had; those that were asked have heard of
 *              the failure then */
struct err *agents_take(struct agents *a, const struct Inference__ModelConfig *proto,
                        const char *config_name, struct source **source);

/* agents_loaded, agents_failed, agents_unload - LOAD_COMPLETE, LOAD_FAIL, UNLOAD. What agents
 * say against it is logged. s may be NULL. */
void agents_loaded(struct agents_set *s);
void agents_failed(struct agents_set *s);
void agents_unload(struct agents_set *s);

/* agents_end - the model is gone: tell the agents what they have not heard, and let go of them.
 * NULL is fine. */
void agents_end(struct agents_set *s);
