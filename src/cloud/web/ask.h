#pragma once
/* Small requests to endpoints that provide credentials. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct call_net;

struct ask {
    const char *method;
    const char *url;
    const char *headers[3]; /* "name: value"; NULL = none */
    const char *body;       /* of a POST; NULL = none */
    /* a local address: without a proxy, and it answers fast */
    bool direct;
    bool maybe; /* the endpoint may not exist */
};

/* ask_run - send it. Errors: as call_run; only NOT_FOUND says that the endpoint does not exist.
 * ret: the answer's text, owned by the caller (mem_free). */
struct err *ask_run(struct call_net *net, void *session, const struct ask *a, char **ret);
