/* The hash under the keys of cached answers, against values that another implementation of
 * BLAKE2b gave. */
#include "cache/cache_key_hash.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of n bytes, byte k of which is (7 k + 3) mod 256. */
static const struct {
    size_t bytes;
    const char *hash;
} known[] = {
    {0, "bdabd763735fd5b7c250c2a8c72768f8de0b35c08afac2eabd72060c37e51380"},
    {1, "d3df0888bf4689add2fd607ecb449884d6a380008977c2464d5dc32bcd1e5bc6"},
    {31, "f7c20acab4aaf4c3cd8af612bfb122d17b62f400e2a01fd5eed25c5b438b1445"},
    {503, "3767959e9bb0fdc248877d12367a0893167f085f1a7ed7ac515ff0deeacbf983"},
    {504, "a8e57b0eb24841cbf5acd2fadf95f88c364c7cb008738244ee43eb57fa02a273"},
    {505, "9971d5f3ddcd8ec4d1115e8df7f11cf34b54780845045e45c2befab412ddaf60"},
    {511, "cd1581b8045e891b4b3d980c9c8971e09182f4e682b90afd18e633e411a87c04"},
    {512, "7d9379511debc2ec7b7f2e77357b3b55488f6c3e36a05dea4cd03bebebf17ead"},
    {1024, "dea114fe27def1de6c4f354406624c4c3cfe7a6b78be79950515c9163855d0c4"},
    {100000, "61effe4195db066c3d1c9ca7340b222bcc381e16c83914b3b5c194662bfe165a"},
};

static void expect(struct cache_key_hash *h, const char *hash)
{
    uint8_t bytes[CACHE_KEY_HASH_BYTES];
    char text[2 * CACHE_KEY_HASH_BYTES + 1];
    cache_key_hash_end(h, bytes);
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    assert_string_equal(text, hash);
}

static uint8_t *message(size_t bytes)
{
    uint8_t *data = malloc(bytes + 1);
    for (size_t k = 0; k < bytes; k++)
        data[k] = (uint8_t)(7 * k + 3);
    return data;
}

static void test_known_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        uint8_t *data = message(known[i].bytes);
        struct cache_key_hash h;
        cache_key_hash_init(&h);
        cache_key_hash_add(&h, data, known[i].bytes);
        expect(&h, known[i].hash);
        free(data);
    }
}

/* Cut anywhere, the same bytes have the same hash. */
static void test_in_pieces(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            uint8_t *data = message(known[i].bytes);
            struct cache_key_hash h;
            cache_key_hash_init(&h);
            cache_key_hash_add(&h, NULL, 0);
            for (size_t at = 0; at < known[i].bytes;) {
                size_t step = unit_random(&random) % 1500;
                step = step < known[i].bytes - at ? step : known[i].bytes - at;
                cache_key_hash_add(&h, data + at, step);
                at += step;
            }
            expect(&h, known[i].hash);
            free(data);
        }
}

/* Zeros at the end count, though the last block is filled up with zeros. */
static void test_length_counts(void **state)
{
    (void)state;
    static const uint8_t zeros[600];
    uint8_t seen[600][CACHE_KEY_HASH_BYTES];
    for (size_t n = 0; n < 600; n++) {
        struct cache_key_hash h;
        cache_key_hash_init(&h);
        cache_key_hash_add(&h, zeros, n);
        cache_key_hash_end(&h, seen[n]);
        for (size_t k = 0; k < n; k++)
            assert_memory_not_equal(seen[n], seen[k], CACHE_KEY_HASH_BYTES);
    }
}

UNIT_MAIN(UNIT(test_known_values), UNIT(test_in_pieces), UNIT(test_length_counts))
