#ifndef TRITONCACHE_H
#define TRITONCACHE_H

/* The C interface between the server and a response cache: a library that keeps the outputs of
 * requests under keys that the server computes. API version 0.1.
 *
 * The rules at the top of tritonserver.h hold here too. The server calls one cache from several
 * threads at the same time.
 */

#include "triton/core/tritonserver.h"
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TRITONCACHE_DECLSPEC __attribute__((visibility("default")))
#define TRITONCACHE_ISPEC    __attribute__((visibility("default")))
#else
#define TRITONCACHE_DECLSPEC
#define TRITONCACHE_ISPEC
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TRITONCACHE_Allocator TRITONCACHE_Allocator;
typedef struct TRITONCACHE_Cache TRITONCACHE_Cache;
typedef struct TRITONCACHE_CacheEntry TRITONCACHE_CacheEntry;

/* ---- Version ---- */

#define TRITONCACHE_API_VERSION_MAJOR 0
#define TRITONCACHE_API_VERSION_MINOR 1

/* TRITONCACHE_ApiVersion - tell which cache interface the server speaks.
 * major, minor  out */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_ApiVersion(uint32_t *major, uint32_t *minor);

/* ---- Entries ---- */

/* An entry is a list of buffers with their attributes. Only CPU memory occurs. */

/* TRITONCACHE_CacheEntryNew - make an empty entry. The library exports it; plug-ins are handed
 *   entries and do not need it.
 * entry  out: owned by the caller */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_CacheEntryNew(TRITONCACHE_CacheEntry **entry);

/* TRITONCACHE_CacheEntryDelete - free an entry made with TRITONCACHE_CacheEntryNew; its buffers
 *   stay. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryDelete(TRITONCACHE_CacheEntry *entry);

/* TRITONCACHE_CacheEntryBufferCount - count an entry's buffers. */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryBufferCount(TRITONCACHE_CacheEntry *entry, size_t *count);

/* TRITONCACHE_CacheEntryAddBuffer - append a buffer.
 * base               borrowed; must outlive the entry
 * buffer_attributes  copied */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryAddBuffer(TRITONCACHE_CacheEntry *entry, void *base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* TRITONCACHE_CacheEntryGetBuffer - give a buffer.
 * index              below the count
 * base               out: borrowed from whoever added it; copy what is to be kept
 * buffer_attributes  made by the caller, filled in by the call */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntryGetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void **base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* TRITONCACHE_CacheEntrySetBuffer - put other memory in a buffer's place, for the server to copy
 *   into or out of.
 * index              below the count
 * new_base           borrowed; must outlive the entry
 * buffer_attributes  copied; NULL to keep the ones it has */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *
TRITONCACHE_CacheEntrySetBuffer(TRITONCACHE_CacheEntry *entry, size_t index, void *new_base,
                                TRITONSERVER_BufferAttributes *buffer_attributes);

/* TRITONCACHE_Copy - let the server copy between its own buffers and those of the entry: out of
 *   the entry during a look-up, into it during an insertion.
 * allocator  as handed to CacheLookup or CacheInsert */
TRITONCACHE_DECLSPEC TRITONSERVER_Error *TRITONCACHE_Copy(TRITONCACHE_Allocator *allocator,
                                                          TRITONCACHE_CacheEntry *entry);

/* ---- What a cache exports ---- */

/* All four are required. */

/* TRITONCACHE_CacheInitialize - make the cache.
 * cache   out: the library's own
 * config  JSON text, as the command line gave it */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInitialize(TRITONCACHE_Cache **cache,
                                                                  const char *config);

/* TRITONCACHE_CacheFinalize - free the cache. */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheFinalize(TRITONCACHE_Cache *cache);

/* TRITONCACHE_CacheInsert - store an entry: set the entry's buffers to the cache's memory, then
 *   TRITONCACHE_Copy.
 * entry   borrowed for the call; its attributes give the sizes
 * errors  ALREADY_EXISTS when the key is taken, INVALID_ARG, INTERNAL */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheInsert(TRITONCACHE_Cache *cache,
                                                              const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator);

/* TRITONCACHE_CacheLookup - find an entry: add the cache's buffers to the empty entry, then
 *   TRITONCACHE_Copy.
 * entry   borrowed for the call
 * errors  NOT_FOUND, INVALID_ARG, INTERNAL */
TRITONCACHE_ISPEC TRITONSERVER_Error *TRITONCACHE_CacheLookup(TRITONCACHE_Cache *cache,
                                                              const char *key,
                                                              TRITONCACHE_CacheEntry *entry,
                                                              TRITONCACHE_Allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif /* TRITONCACHE_H */
