#pragma once
/* Small questions to endpoints that give credentials. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct call_net;

struct ask {
    const char *method;
    const char *url;
    const char *headers[3]; /* "name: value"; NULL = none */
    const char *body;       /* of a POST; NULL = none */
    /* an address of this machine's surroundings: past any proxy, and it answers fast */
    bool direct;
    bool maybe; /* nobody may be there */
};

/* ask_run - errors as call_run: NOT_FOUND, and no other, says that there is no such endpoint.
 * ret: the answer's text, the caller's (mem_free). */
struct err *ask_run(struct call_net *net, void *session, const struct ask *a, char **ret);
