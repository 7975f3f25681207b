#pragma once
/* The key under which a response cache stores the answer to a request: a hash of everything that
 * the answer can depend on. Requests that differ in any of it have different keys. Pure.
 *
 * The key contains the model, its version, its configuration and the state of its files at load
 * time (cache_key_model); of the request: its batch flags and correlation id, its parameters,
 * the names of the requested outputs, and for each input its name, datatype, shape and bytes.
 * The key does not contain the request's id, priority and timeout, nor the order of inputs,
 * outputs and parameters. */
#include "cache/cache_key_hash.h"

#include <stdbool.h>
#include <stdint.h>

struct request;

#define CACHE_KEY_TEXT 64u /* characters of a key */

struct cache_key_model {
    uint8_t seed[CACHE_KEY_HASH_BYTES];
};

/* cache_key_model_init - set the part that all keys of one loaded version share.
 * config  bytes that represent its configuration
 * files   a text that changes when the model's files change */
void cache_key_model_init(struct cache_key_model *m, const char *name, int64_t version,
                          const void *config, size_t config_bytes, const char *files);

/* cache_key_model_at - derive the part for a certain time: keys for different times differ. */
void cache_key_model_at(const struct cache_key_model *m, uint64_t time,
                        struct cache_key_model *ret);

/* cache_key_make - make the key of a prepared request that no other thread uses now; ends in
 * NUL.
 * returns  false if an input lies in memory that cannot be read here; it has no key then */
bool cache_key_make(const struct cache_key_model *m, struct request *r,
                    char ret[CACHE_KEY_TEXT + 1]);
