#pragma once
/* A 256-bit hash for cache keys. Nobody can find two inputs with the same hash, and it does not
 * depend on the machine, the process or a secret, so that servers can share a cache. It runs
 * four BLAKE2b lanes side by side: lane i takes the 64-bit words i, i + 4, i + 8 ... of the
 * input. The input is followed by a word with its length and padded with zeros to blocks of 512
 * bytes. The hash is BLAKE2b-256 of the first 32 bytes of each lane's hash. Pure.
 * source  RFC 7693; docs/decisions/0030-response-cache.md says why this one */
#include <stddef.h>
#include <stdint.h>

#define CACHE_KEY_HASH_BYTES 32u
#define CACHE_KEY_HASH_BLOCK 512u

struct cache_key_hash {
    _Alignas(32) uint64_t lanes[8][4]; /* word by word; each word of all four lanes */
    uint64_t done;                     /* bytes of each lane that were hashed */
    uint64_t total;
    uint32_t held; /* bytes in block */
    _Alignas(32) uint8_t block[CACHE_KEY_HASH_BLOCK];
};

void cache_key_hash_init(struct cache_key_hash *h);

/* cache_key_hash_add - append bytes; len 0 with NULL is fine. */
void cache_key_hash_add(struct cache_key_hash *h, const void *data, size_t len);

/* cache_key_hash_end - write the hash of all bytes added; h must not be used any more. */
void cache_key_hash_end(struct cache_key_hash *h, uint8_t ret[CACHE_KEY_HASH_BYTES]);
