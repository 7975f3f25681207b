#include "cloud/verify.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "cloud/web/cloud_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB             ((uint64_t)1 << 20)
#define MAX_CANDIDATES  8u
#define CRC32C_REVERSED 0x82f63b78u

uint32_t verify_crc32c(uint32_t crc, const void *data, size_t len)
{
    static _Thread_local uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++)
                c = c & 1 ? (c >> 1) ^ CRC32C_REVERSED : c >> 1;
            table[i] = c;
        }
    const unsigned char *b = data;
    crc = ~crc;
    for (size_t i = 0; i < len; i++)
        crc = (crc >> 8) ^ table[(crc ^ b[i]) & 255];
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
