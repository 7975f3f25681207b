#pragma once
/* The options of the response cache: --cache-config, --cache-config-json,
 * --response-cache-byte-size. */
#include "server/options/options_row.h"

/* options_cache_add - add such an option; values are borrowed or kept as by options_value_set. A
 * later setting of a key replaces an earlier one.
 * errors  INVALID_ARG for a value of the wrong form, for a byte size together with other
 *         settings, and for too many settings */
struct err *options_cache_add(const struct options_row *row, const char *value, struct options *o);

/* options_cache_config - the name of the configured cache, and its settings as a JSON object for
 * TRITONCACHE_CacheInitialize.
 * ret_name    NULL = no cache; points into *o
 * ret_config  the caller frees it (mem_free); NULL without a cache
 * errors      INVALID_ARG if several caches are configured */
struct err *options_cache_config(const struct options *o, const char **ret_name, char **ret_config);
