#include "cloud/verify.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/web/cloud_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB            ((uint64_t)1 << 20)
#define MAX_CANDIDATES 8u

/* What a byte makes of a CRC-32C of 0: of its low four bits, and of its high four. The two are
 * added without carry. */
static const uint32_t crc32c_of_low[16] = {
    0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f, 0x35f1141c, 0x26a1e7e8, 0xd4ca64eb,
    0x8ad958cf, 0x78b2dbcc, 0x6be22838, 0x9989ab3b, 0x4d43cfd0, 0xbf284cd3, 0xac78bf27, 0x5e133c24,
};
static const uint32_t crc32c_of_high[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t verify_crc32c(uint32_t crc, const void *data, size_t len)
{
    const unsigned char *b = data;
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        uint32_t byte = (crc ^ b[i]) & 255;
        crc = (crc >> 8) ^ crc32c_of_low[byte & 15] ^ crc32c_of_high[byte >> 4];
    }
    return ~crc;
}

/* The checks of one pass over the bytes; NULL or false = not needed. */
struct pass {
    const struct cloud_abi *abi;
    void *sha;
    void *md5;
    bool crc_wanted;
    uint32_t crc;
    uint64_t part_bytes; /* of an upload in parts; 0 = not in parts */
    uint64_t part_left;
    void *parts; /* MD5 over the MD5s of the parts */
};

static void add_in_parts(struct pass *p, const unsigned char *data, size_t len)
{
    unsigned char md5[CLOUD_ABI_MD5_BYTES];
    while (len) {
        size_t n = len < p->part_left ? len : (size_t)p->part_left;
        p->abi->digest_add(p->md5, data, n);
        data += n;
        len -= n;
        p->part_left -= n;
        if (p->part_left)
            continue;
        p->abi->digest_end(p->md5, md5);
        p->abi->digest_add(p->parts, md5, sizeof(md5));
        p->md5 = p->abi->digest_new(CLOUD_ABI_MD5);
        p->part_left = p->part_bytes;
    }
}

static void verify_add(void *owner, const void *data, size_t len)
{
    struct pass *p = owner;
    if (p->sha)
        p->abi->digest_add(p->sha, data, len);
    if (p->crc_wanted)
        p->crc = verify_crc32c(p->crc, data, len);
    if (p->part_bytes)
        add_in_parts(p, data, len);
    else if (p->md5)
        p->abi->digest_add(p->md5, data, len);
}

static bool same_hex(const unsigned char *bytes, size_t len, const char *hex)
{
    char found[2 * CLOUD_ABI_SHA256_BYTES + 1];
    for (size_t i = 0; i < len; i++)
        snprintf(found + 2 * i, 3, "%02x", bytes[i]);
    return strncmp(found, hex, 2 * len) == 0;
}

/* Computes the MD5 of the parts' MD5s for one part size. */
static struct err *try_parts(const struct cloud_abi *abi, const struct stash_part *part,
                             uint64_t part_bytes, const char *hex, bool *ret)
{
    unsigned char out[CLOUD_ABI_MD5_BYTES];
    struct pass p = {.abi = abi, .part_bytes = part_bytes, .part_left = part_bytes};
    p.md5 = abi->digest_new(CLOUD_ABI_MD5);
    p.parts = abi->digest_new(CLOUD_ABI_MD5);
    struct err *e = stash_read(part, verify_add, &p);
    bool rest = p.part_left < part_bytes;
    abi->digest_end(p.md5, out);
    if (rest)
        abi->digest_add(p.parts, out, sizeof(out));
    abi->digest_end(p.parts, out);
    *ret = !e && same_hex(out, sizeof(out), hex);
    return e;
}

/* The part sizes that uploads in `count` parts usually have: whole MiB, powers of two first. */
static size_t candidates(uint64_t bytes, uint64_t count, uint64_t ret[MAX_CANDIDATES])
{
    size_t n = 0;
    uint64_t least = (bytes + count - 1) / count;
    uint64_t most = count > 1 ? (bytes - 1) / (count - 1) : UINT64_MAX / 2;
    for (uint64_t size = MIB; n < MAX_CANDIDATES && size <= most && size < UINT64_MAX / 4;
         size *= 2)
        if (size >= least)
            ret[n++] = size;
    for (uint64_t size = (least + MIB - 1) / MIB * MIB; n < MAX_CANDIDATES && size <= most;
         size += MIB)
        if (size & (size - 1))
            ret[n++] = size;
    return n;
}

static struct err *verify_parts(const struct cloud_abi *abi, const struct stash_part *part,
                                const char *text, enum verify_result *ret)
{
    uint64_t sizes[MAX_CANDIDATES];
    uint64_t count = strtoull(text + 33, NULL, 10);
    bool same = false;
    struct err *e = NULL;
    *ret = VERIFY_UNSURE;
    void *probe = abi->digest_new(CLOUD_ABI_MD5);
    if (!probe || !count)
        return NULL;
    unsigned char ignored[CLOUD_ABI_MD5_BYTES];
    abi->digest_end(probe, ignored);
    size_t n = candidates(part->bytes, count, sizes);
    for (size_t i = 0; !e && !same && i < n; i++)
        e = try_parts(abi, part, sizes[i], text, &same);
    *ret = same ? VERIFY_SAME : VERIFY_DOUBTED;
    return e;
}

/* The text after `name` in the digest; NULL if it is not there. */
static const char *digest_of(const char *digest, const char *name)
{
    const char *at = strstr(digest, name);
    return at ? at + strlen(name) : NULL;
}

struct err *verify_part(const struct cloud_abi *abi, const struct stash_part *p, const char *digest,
                        unsigned char ret_sha[STASH_HASH_BYTES], enum verify_result *ret)
{
    const char *md5 = digest_of(digest, "md5:");
    const char *crc = digest_of(digest, "crc32c:");
    const char *parts = digest_of(digest, "md5parts:");
    unsigned char out[CLOUD_ABI_MD5_BYTES];
    struct pass pass = {.abi = abi, .sha = abi->digest_new(CLOUD_ABI_SHA256)};
    pass.md5 = md5 ? abi->digest_new(CLOUD_ABI_MD5) : NULL;
    pass.crc_wanted = crc != NULL;
    struct err *e = stash_read(p, verify_add, &pass);
    abi->digest_end(pass.sha, ret_sha);
    *ret = VERIFY_UNSURE;
    if (crc)
        *ret = pass.crc == (uint32_t)strtoul(crc, NULL, 16) ? VERIFY_SAME : VERIFY_OTHER;
    if (pass.md5) {
        abi->digest_end(pass.md5, out);
        bool same = same_hex(out, sizeof(out), md5);
        *ret = same && *ret != VERIFY_OTHER ? VERIFY_SAME : VERIFY_OTHER;
    }
    return e || !parts ? e : verify_parts(abi, p, parts, ret);
}

struct err *verify_in_parts(const struct cloud_abi *abi, const struct stash_part *p,
                            const char *digest, uint64_t part_bytes, bool *ret)
{
    const char *parts = digest_of(digest, "md5parts:");
    uint64_t count = parts ? strtoull(parts + 33, NULL, 10) : 0;
    *ret = false;
    if (!count || !part_bytes || (p->bytes - 1) / part_bytes + 1 != count)
        return NULL;
    return try_parts(abi, p, part_bytes, parts, ret);
}
