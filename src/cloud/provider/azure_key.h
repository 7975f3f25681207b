#pragma once
/* Shared Key signatures of Azure Storage. Pure, except for the digest. Private to provider/.
 * source  Azure Storage: Authorize with Shared Key */
#include "base/strbuf.h"

#include <stddef.h>

struct cloud_abi;

struct azure_key_pair {
    const char *name;
    const char *value;
};

/* A GET without a body. */
struct azure_key_request {
    const char *account;
    const char *path;                   /* as it is sent, beginning with '/' */
    const struct azure_key_pair *query; /* not escaped; sorted by name */
    size_t query_count;
    const struct azure_key_pair *headers; /* x-ms-...; sorted by name */
    size_t header_count;
    const char *if_match; /* "" = none */
    const char *range;
};

/* azure_key_to_sign - the string to sign. For tests. */
void azure_key_to_sign(const struct azure_key_request *r, struct strbuf *sb);

/* azure_key_authorization - the value of the header Authorization.
 * key  as bytes */
void azure_key_authorization(const struct cloud_abi *abi, const struct azure_key_request *r,
                             const void *key, size_t key_len, struct strbuf *sb);
