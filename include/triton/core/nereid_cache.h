#ifndef NEREID_CACHE_H
#define NEREID_CACHE_H

/* A symbol that a response cache may export for Nereid in addition to the common cache
 * interface. It is optional and is found with dlsym; other servers ignore it. */

#include "triton/core/tritoncache.h"

#ifdef __cplusplus
extern "C" {
#endif

/* nereid_cache_inline_v1 - allow calls on a network thread.
 *
 * A cache that defines this with a value other than 0 promises that TRITONCACHE_CacheLookup and
 * TRITONCACHE_CacheInsert
 * - do not block: no sleep, no input or output, no wait for another thread but for a short lock,
 *   and none while such a thread copies an entry,
 * - take hardly longer than copying the entry takes,
 * - work on any number of threads at a time, as the common interface requires anyway.
 *
 * The server may then call the cache on the thread that received a request. Without the promise
 * it uses threads of its own, which costs each request a change of threads.
 */
extern TRITONCACHE_ISPEC const uint32_t nereid_cache_inline_v1;

#ifdef __cplusplus
}
#endif

#endif /* NEREID_CACHE_H */
