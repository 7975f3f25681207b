#pragma once
/* Finds credentials and the region for S3 as the provider's tools do, in this order: the entry
 * of the credential file, the environment, the profile in the configuration files, a web
 * identity, the container's endpoint, the instance's role; else none.
 * source  spec/requirements.md MR-10 to MR-12 */
#include "base/err.h"
#include "cloud/web/lease.h"

#include <stdbool.h>
#include <stdint.h>

struct call_net;
struct credential_entry;

struct aws_key {
    char *id; /* "" = anonymous: requests are not signed */
    char *secret;
    char *token;           /* "" = none */
    uint64_t ends_wall_ns; /* 0 = never */
};

void aws_key_fini(struct aws_key *k);

struct aws {
    struct call_net *net;
    char *profile;      /* "" = the default one */
    char *region;       /* from the settings; never "" */
    char *endpoint;     /* for paths that name none; NULL = the provider's own */
    bool fixed;         /* key came from the entry or the environment and does not change */
    struct aws_key key; /* if fixed */
    struct lease lease; /* of a key, if not fixed */
    bool said;          /* it was logged that there is no key; used by the fetching thread only */
};

/* aws_init - read the environment and the profile's region; sends no request.
 * entry   of the credential file, or NULL */
struct err *aws_init(struct aws *a, struct call_net *net, const struct credential_entry *entry);
void aws_fini(struct aws *a);

/* aws_get - a key that is valid for some minutes; fetches one if needed. Blocks; on a crew's
 * thread.
 * session  of that thread
 * ret      a copy, owned by the caller (aws_key_fini) */
struct err *aws_get(struct aws *a, void *session, struct aws_key *ret);

/* aws_refused - the store refused the key: the next aws_get reads it again. Returns false if
 * there is no other. */
bool aws_refused(struct aws *a);

/* aws_is_anonymous - true if no key was found so far. */
bool aws_is_anonymous(struct aws *a);
