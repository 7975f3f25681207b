#pragma once
/* The response cache in the path of a request: looked up before the request is queued, its
 * answer put in before that is delivered.
 *
 * Who waits for the cache: a network thread never does. A cache that promises not to wait
 * (nereid_cache_inline_v1) is asked right where the request is submitted or answered, as long as
 * inputs and answers are small; everything else goes through threads of its own (os/crew.h).
 * docs/decisions/0030-response-cache.md says why. */
#include "serve/features.h"

/* Around the scheduler of versions whose configuration asks for a cache, in a server that has
 * one. Requests are looked up as they come; those that stay are queued, the others are answered,
 * or queued later.
 * look     what stands for the files of a model
 * changed  the answers of ensembles may be others
 * errors   of open: as options_cache_config and cache_plugin_load; of look: when the directory
 *          cannot be read */
extern const struct feature cache_stage_feature;
