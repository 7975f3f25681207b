#include "cache/cache_key_hash.h"

#include <string.h>

#define ROUNDS 12

/* One word of each of the four lanes. Never passed to or from a function, because the calling
 * convention for it depends on the machine. */
typedef uint64_t quad __attribute__((vector_size(32)));

static const uint64_t start[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

static const uint8_t order[ROUNDS][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

#define TURN(x, n) (((x) >> (n)) | ((x) << (64 - (n))))
#define MIX(a, b, c, d, x, y)         \
    do {                              \
        v[a] = v[a] + v[b] + (x);     \
        v[d] = TURN(v[d] ^ v[a], 32); \
        v[c] = v[c] + v[d];           \
        v[b] = TURN(v[b] ^ v[c], 24); \
        v[a] = v[a] + v[b] + (y);     \
        v[d] = TURN(v[d] ^ v[a], 16); \
        v[c] = v[c] + v[d];           \
        v[b] = TURN(v[b] ^ v[c], 63); \
    } while (0)

/* BLAKE2b's compression of one block of 128 bytes in each lane. */
static inline __attribute__((always_inline)) void
compress(uint64_t lanes[8][4], const uint8_t *block, uint64_t done, uint64_t last)
{
    quad h[8];
    quad m[16];
    quad v[16];
    memcpy(h, lanes, sizeof(h));
    memcpy(m, block, sizeof(m));
    for (int i = 0; i < 8; i++) {
        v[i] = h[i];
        v[i + 8] = (quad){start[i], start[i], start[i], start[i]};
    }
    v[12] = v[12] ^ (quad) { done, done, done, done };
    v[14] = v[14] ^ (quad) { last, last, last, last };
#pragma GCC unroll 12
    for (int r = 0; r < ROUNDS; r++) {
        const uint8_t *s = order[r];
        MIX(0, 4, 8, 12, m[s[0]], m[s[1]]);
        MIX(1, 5, 9, 13, m[s[2]], m[s[3]]);
        MIX(2, 6, 10, 14, m[s[4]], m[s[5]]);
        MIX(3, 7, 11, 15, m[s[6]], m[s[7]]);
        MIX(0, 5, 10, 15, m[s[8]], m[s[9]]);
        MIX(1, 6, 11, 12, m[s[10]], m[s[11]]);
        MIX(2, 7, 8, 13, m[s[12]], m[s[13]]);
        MIX(3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++)
        h[i] = h[i] ^ v[i] ^ v[i + 8];
    memcpy(lanes, h, sizeof(h));
}

typedef void compress_fn(uint64_t lanes[8][4], const uint8_t *block, uint64_t done, uint64_t last);

static compress_fn compress_plain;
static void compress_plain(uint64_t lanes[8][4], const uint8_t *block, uint64_t done, uint64_t last)
{
    compress(lanes, block, done, last);
}

#if defined(__x86_64__)
static compress_fn compress_avx2;
static __attribute__((target("avx2"))) void
compress_avx2(uint64_t lanes[8][4], const uint8_t *block, uint64_t done, uint64_t last)
{
    compress(lanes, block, done, last);
}

static compress_fn *fastest(void)
{
    return __builtin_cpu_supports("avx2") ? compress_avx2 : compress_plain;
}
#else
static compress_fn *fastest(void)
{
    return compress_plain;
}
#endif

static void reset(uint64_t lanes[8][4], uint64_t digest_bytes)
{
    for (int i = 0; i < 8; i++)
        for (int lane = 0; lane < 4; lane++)
            lanes[i][lane] = start[i] ^ (i == 0 ? 0x01010000u ^ digest_bytes : 0);
}

void cache_key_hash_init(struct cache_key_hash *h)
{
    reset(h->lanes, 64);
    h->done = 0;
    h->total = 0;
    h->held = 0;
}

/* Hashes a block that is not the last one; the last block gets a mark. */
static void cache_key_hash_mix(struct cache_key_hash *h, const uint8_t *block, compress_fn *f)
{
    h->done += CACHE_KEY_HASH_BLOCK / 4;
    f(h->lanes, block, h->done, 0);
}

void cache_key_hash_add(struct cache_key_hash *h, const void *data, size_t len)
{
    if (!len)
        return;
    const uint8_t *p = data;
    h->total += len;
    if (len > CACHE_KEY_HASH_BLOCK - h->held) {
        compress_fn *f = fastest();
        size_t step = CACHE_KEY_HASH_BLOCK - h->held;
        if (h->held) {
            memcpy(h->block + h->held, p, step);
            cache_key_hash_mix(h, h->block, f);
            p += step;
            len -= step;
            h->held = 0;
        }
        for (; len > CACHE_KEY_HASH_BLOCK; p += CACHE_KEY_HASH_BLOCK, len -= CACHE_KEY_HASH_BLOCK)
            cache_key_hash_mix(h, p, f);
    }
    memcpy(h->block + h->held, p, len);
    h->held += (uint32_t)len;
}

void cache_key_hash_end(struct cache_key_hash *h, uint8_t ret[CACHE_KEY_HASH_BYTES])
{
    uint64_t total = h->total;
    cache_key_hash_add(h, &total, sizeof(total));
    memset(h->block + h->held, 0, CACHE_KEY_HASH_BLOCK - h->held);
    h->done += CACHE_KEY_HASH_BLOCK / 4;
    fastest()(h->lanes, h->block, h->done, ~UINT64_C(0));

    /* The root: every lane hashes the same block, and one lane's result is used. */
    uint64_t root[8][4];
    _Alignas(32) uint64_t block[16][4];
    for (int i = 0; i < 16; i++)
        for (int lane = 0; lane < 4; lane++)
            block[i][lane] = h->lanes[i % 4][i / 4];
    reset(root, CACHE_KEY_HASH_BYTES);
    fastest()(root, (const uint8_t *)block, CACHE_KEY_HASH_BLOCK / 4, ~UINT64_C(0));
    for (int i = 0; i < 4; i++)
        memcpy(ret + 8 * i, &root[i][0], 8);
}
