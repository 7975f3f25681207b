#pragma once
/* The options about the response cache: --cache-config, --cache-config-json,
 * --response-cache-byte-size. */
#include "server/options/options_row.h"

/* options_cache_add - one such option; values are borrowed or kept as by options_value_set. A
 * later setting of a key replaces the earlier one.
 * errors  INVALID_ARG for another form than the row shows, for a byte size beside other
 *         settings, and for too many */
struct err *options_cache_add(const struct options_row *row, const char *value, struct options *o);

/* options_cache_config - which cache is wanted, and its settings as a JSON object, as
 * TRITONCACHE_CacheInitialize takes it.
 * ret_name    NULL = none; points into *o
 * ret_config  the caller's (mem_free); NULL without a cache
 * errors      INVALID_ARG when several caches are configured */
struct err *options_cache_config(const struct options *o, const char **ret_name, char **ret_config);
