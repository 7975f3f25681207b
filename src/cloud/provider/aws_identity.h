#pragma once
/* A key for a role, in exchange for a token that says who this is: how pods get theirs. Private
 * to provider/.
 * source  AWS Security Token Service: AssumeRoleWithWebIdentity */
#include "base/err.h"

#include <stdbool.h>

struct aws_key;
struct call_net;

/* aws_identity_is_there - whether AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN say that there is
 * one. */
bool aws_identity_is_there(void);

/* aws_identity_get - reads the token's file, which others replace, and asks for a key. Blocks.
 * region  of the service, unless AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL leads elsewhere
 * errors  the file cannot be read; what the service says */
struct err *aws_identity_get(struct call_net *net, void *session, const char *region,
                             struct aws_key *ret);
