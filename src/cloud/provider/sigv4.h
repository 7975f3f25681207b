#pragma once
/* AWS Signature Version 4. Pure, except for the digests.
 * source  AWS Signature Version 4 for API requests, and its test suite */
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

struct cloud_abi;

struct sigv4_pair {
    const char *name;
    const char *value;
};

struct sigv4_request {
    const char *method;
    const char *path;               /* as it is sent: escaped once, beginning with '/' */
    const struct sigv4_pair *query; /* not escaped, any order */
    size_t query_count;
    const struct sigv4_pair *headers; /* all signed headers, with host and x-amz-date */
    size_t header_count;
    const char *payload_hash; /* hexadecimal, or UNSIGNED-PAYLOAD */
    const char *region;
    const char *service;
    const char *date; /* YYYYMMDDTHHMMSSZ */
};

struct sigv4_key {
    const char *id;
    const char *secret;
};

#define SIGV4_DATE_CHARS 16u

/* sigv4_date - a wall time in the form of `date`. */
void sigv4_date(uint64_t wall_ns, char ret[SIGV4_DATE_CHARS + 1]);

/* sigv4_query - the query as it must be signed and sent: sorted, escaped. */
void sigv4_query(const struct sigv4_pair *query, size_t count, struct strbuf *sb);

/* sigv4_canonical - the canonical request.
 * sigv4_to_sign - the string to sign. For tests. */
void sigv4_canonical(const struct sigv4_request *r, struct strbuf *sb);
void sigv4_to_sign(const struct cloud_abi *m, const struct sigv4_request *r, struct strbuf *sb);

/* sigv4_authorization - the value of the header Authorization. */
void sigv4_authorization(const struct cloud_abi *m, const struct sigv4_request *r,
                         const struct sigv4_key *key, struct strbuf *sb);
