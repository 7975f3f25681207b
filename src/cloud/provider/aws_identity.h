#pragma once
/* Gets a key for a role in exchange for an identity token, as Kubernetes pods do. Private to
 * provider/.
 * source  AWS Security Token Service: AssumeRoleWithWebIdentity */
#include "base/err.h"

#include <stdbool.h>

struct aws_key;
struct call_net;

/* aws_identity_is_there - true if AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are set. */
bool aws_identity_is_there(void);

/* aws_identity_get - read the token's file, which others may replace, and request a key. Blocks.
 * region  of the service, unless AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL is set
 * errors  the file cannot be read; those of the service */
struct err *aws_identity_get(struct call_net *net, void *session, const char *region,
                             struct aws_key *ret);
