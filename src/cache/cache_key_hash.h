#pragma once
/* A 256-bit hash for the keys of answers: nobody can find two inputs with one hash, and it does
 * not depend on the machine, the process or a secret, so that servers can share a cache. Four
 * BLAKE2b lanes side by side: lane i takes the 64-bit words i, i + 4, i + 8 ... of the input
 * (padded with zeros to blocks of 512 bytes, after a last word with its length), and the hash is
 * BLAKE2b-256 of the first 32 bytes of each lane's. Pure.
 * source  RFC 7693; docs/decisions/0030-response-cache.md says why this one */
#include <stddef.h>
#include <stdint.h>

#define CACHE_KEY_HASH_BYTES 32u
#define CACHE_KEY_HASH_BLOCK 512u

struct cache_key_hash {
    _Alignas(32) uint64_t lanes[8][4]; /* word by word of the state, the four lanes of each */
    uint64_t done;                     /* bytes of each lane that were mixed */
    uint64_t total;
    uint32_t held; /* bytes in block */
    _Alignas(32) uint8_t block[CACHE_KEY_HASH_BLOCK];
};

void cache_key_hash_init(struct cache_key_hash *h);

/* cache_key_hash_add - append bytes; len 0 with NULL is fine. */
void cache_key_hash_add(struct cache_key_hash *h, const void *data, size_t len);

/* cache_key_hash_end - the hash of all that was added; h cannot be added to any more. */
void cache_key_hash_end(struct cache_key_hash *h, uint8_t ret[CACHE_KEY_HASH_BYTES]);
