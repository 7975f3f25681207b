#pragma once
/* Credentials that a container or an instance was given. Private to provider/. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct aws_key;
struct call_net;

/* aws_role_get - from the container's endpoint, else from the instance's role. Blocks.
 * ret_found  false: this is neither, as far as refused connections, silence or 404 say
 * errors     there is an endpoint, and it does not give what it should */
struct err *aws_role_get(struct call_net *net, void *session, struct aws_key *ret, bool *ret_found);

/* aws_role_time - "2026-11-21T14:00:00Z" as wall time; 0 when it is none, or NULL. */
uint64_t aws_role_time(const char *text);
