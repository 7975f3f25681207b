#pragma once
/* The response cache in the path of a request: looked up before the request is queued, its answer put in before that is delivered.
 *
 * Who waits for the cache: a network thread never does. A cache that promises not to wait (nereid_cache_inline_v1) is asked right where
 * the request is submitted or answered, as long as inputs and answers are small; everything else goes through threads of its own
 * (os/crew.h). docs/decisions/0030-response-cache.md says why. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct cache_stage;
struct model_config;
struct serve_version;

/* cache_stage_new - load the cache of a server. Blocks.
 * directory, name, config  as cache_plugin_load
 * errors  what that says */
struct err *cache_stage_new(const char *directory, const char *name, const char *config,
                            struct cache_stage **ret);

/* cache_stage_free - no version of the server is left. NULL is fine. Blocks. */
void cache_stage_free(struct cache_stage *s);

/* cache_stage_files - what stands for the files of a model, to be taken before they are read; the caller's (mem_free). Blocks.
 * s       NULL = the server has no cache
 * ret     NULL without a cache
 * errors  when the directory cannot be read */
struct err *cache_stage_files(const struct cache_stage *s, const char *model_dir, char **ret);

/* cache_stage_wrap - around the version's scheduler, if the configuration asks for a cache and the server has one. Before the version
 * starts. Requests are looked up as they come; those that stay are queued, the others are answered, or queued later.
 * files  of cache_stage_files; borrowed */
void cache_stage_wrap(struct cache_stage *s, struct serve_version *v, const char *files);

/* cache_stage_around - whether it is there. */
bool cache_stage_around(const struct serve_version *v);

/* cache_stage_changed - other versions serve from now on: the answers of ensembles may be others. s may be NULL. Any thread. */
void cache_stage_changed(struct cache_stage *s);
