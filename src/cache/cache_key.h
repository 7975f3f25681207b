#pragma once
/* The key under which a response cache keeps the answer to a request: a hash of everything that
 * the answer can depend on. Two requests that differ in any of it have different keys. Pure.
 *
 * In it: the model, its version, its configuration and what its files were when it was loaded
 * (cache_key_model); of the request its batch flags and correlation id, its parameters, the
 * names of the outputs it asks for, and of each input name, datatype, shape and bytes. Not in
 * it: the request's id, priority and time-out, and the order in which inputs, outputs and
 * parameters were named. */
#include "cache/cache_key_hash.h"

#include <stdbool.h>
#include <stdint.h>

struct request;

#define CACHE_KEY_TEXT 64u /* characters of a key */

struct cache_key_model {
    uint8_t seed[CACHE_KEY_HASH_BYTES];
};

/* cache_key_model_init - what all keys of one loaded version share.
 * config  bytes that stand for its configuration
 * files   what stands for its files: a text that changes when they do */
void cache_key_model_init(struct cache_key_model *m, const char *name, int64_t version,
                          const void *config, size_t config_bytes, const char *files);

/* cache_key_model_at - the same for a time: keys of one are never those of another. */
void cache_key_model_at(const struct cache_key_model *m, uint64_t time,
                        struct cache_key_model *ret);

/* cache_key_make - the key of a prepared request that nobody else uses at this moment; ends in NUL.
 * returns  false when an input lies in memory that cannot be read here: it has no key */
bool cache_key_make(const struct cache_key_model *m, struct request *r,
                    char ret[CACHE_KEY_TEXT + 1]);
