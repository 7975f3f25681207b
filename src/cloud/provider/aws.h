#pragma once
/* Credentials and the region for S3, from where the provider's tools take them, in this order:
 * the entry of the credential file, the environment, the profile in the configuration files, a
 * web identity, the container's endpoint, the instance's role; else none.
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
    char *profile;      /* "" = the usual one */
    char *region;       /* as the settings say; never "" */
    char *endpoint;     /* for paths that name none; NULL = the provider's own */
    bool fixed;         /* key came from the entry or the environment: it does not change */
    struct aws_key key; /* when fixed */
    struct lease lease; /* of a key, else */
    bool said;          /* that there is none; only who fetches looks at it */
};

/* aws_init - reads the environment and the profile's region; no request.
 * entry   of the credential file, or NULL */
struct err *aws_init(struct aws *a, struct call_net *net, const struct credential_entry *entry);
void aws_fini(struct aws *a);

/* aws_get - a key that is good for some minutes; fetches one when it must. Blocks; on a crew's
 * thread.
 * session  of that thread
 * ret      a copy, the caller's (aws_key_fini) */
struct err *aws_get(struct aws *a, void *session, struct aws_key *ret);

/* aws_refused - the store did not take the key: the next get reads it anew. false: there is no
 * other. */
bool aws_refused(struct aws *a);

/* aws_is_anonymous - whether no key was found, so far. */
bool aws_is_anonymous(struct aws *a);
