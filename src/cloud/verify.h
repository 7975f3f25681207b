#pragma once
/* Checks that a download is what the store says. Private to cloud/. */
#include "base/err.h"
#include "cloud/stash.h"

struct cloud_abi;

enum verify_result {
    VERIFY_SAME,
    VERIFY_OTHER,   /* damaged on its way, or in the store */
    VERIFY_UNSURE,  /* the store has no digest that can be checked */
    VERIFY_DOUBTED, /* it may be right, but was uploaded in parts of an unusual size */
};

/* verify_part - check a complete download.
 * digest  "md5:<hex>", "crc32c:<hex>" or "md5parts:<hex>-<count>", also several separated by
 *         ','; "" = unknown
 * ret_sha its SHA-256 */
struct err *verify_part(const struct cloud_abi *abi, const struct stash_part *p, const char *digest,
                        unsigned char ret_sha[STASH_HASH_BYTES], enum verify_result *ret);

/* verify_in_parts - check a doubted download again, with a part size that is not among the usual
 * ones.
 * ret  true if its digest is right for parts of this size */
struct err *verify_in_parts(const struct cloud_abi *abi, const struct stash_part *p,
                            const char *digest, uint64_t part_bytes, bool *ret);

/* verify_crc32c - continue a CRC-32C with more bytes; begin with 0. Pure. */
uint32_t verify_crc32c(uint32_t crc, const void *data, size_t len);
