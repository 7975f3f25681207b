#pragma once
/* Whether what arrived is what the store says it is. Private to cloud/. */
#include "base/err.h"
#include "cloud/stash.h"

struct cloud_abi;

enum verify_result {
    VERIFY_SAME,
    VERIFY_OTHER,   /* damaged on its way, or at the store */
    VERIFY_UNSURE,  /* the store says nothing that can be checked */
    VERIFY_DOUBTED, /* it may be the same, in parts of an unusual size */
};

/* verify_part - read a whole part.
 * digest  "md5:<hex>", "crc32c:<hex>" or "md5parts:<hex>-<count>", also several with ','
 *         between; "" = nothing is known
 * ret_sha its SHA-256 */
struct err *verify_part(const struct cloud_abi *abi, const struct stash_part *p, const char *digest,
                        unsigned char ret_sha[STASH_HASH_BYTES], enum verify_result *ret);

/* verify_in_parts - the same of a doubted one, for a size of its parts that the digest's own
 * candidates lack.
 * ret  whether its digest is that of parts of this size */
struct err *verify_in_parts(const struct cloud_abi *abi, const struct stash_part *p,
                            const char *digest, uint64_t part_bytes, bool *ret);

/* verify_crc32c - continue a CRC-32C over more bytes; 0 to begin with. Pure. */
uint32_t verify_crc32c(uint32_t crc, const void *data, size_t len);
