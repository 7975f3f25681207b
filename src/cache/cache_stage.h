#pragma once
/* The response cache in the path of a request: the request is looked up before it is queued, and
 * its answer is inserted before it is delivered.
 *
 * A network thread never waits for the cache. A cache that promises not to block
 * (nereid_cache_inline_v1) is called on the thread that submits or answers the request, if
 * inputs and answers are small. All other calls run on the cache's own threads (os/crew.h).
 * docs/decisions/0030-response-cache.md says why. */
#include "serve/features.h"

/* A wrapper around the scheduler of versions whose configuration asks for a cache, in a server
 * that has one. Each request is looked up when it arrives. A hit is answered; other requests are
 * queued, at once or later.
 * look     returns a text that represents the files of a model
 * changed  cached answers of ensembles may be outdated
 * errors   of open: as options_cache_config and cache_plugin_load; of look: the directory cannot
 *          be read */
extern const struct feature cache_stage_feature;
