#pragma once
/* Credentials of a container or an instance. Private to provider/. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct aws_key;
struct call_net;

/* aws_role_get - from the container's endpoint, else from the instance's role. Blocks.
 * ret_none  why this machine is neither (connection refused, no answer, or 404), owned by the
 *           caller; NULL: *ret is set
 * errors    the endpoint exists, but its answer is wrong */
struct err *aws_role_get(struct call_net *net, void *session, struct aws_key *ret,
                         struct err **ret_none);

/* aws_role_time - "2026-11-21T14:00:00Z" as wall time; 0 if invalid or NULL. */
uint64_t aws_role_time(const char *text);
