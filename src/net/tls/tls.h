#pragma once
/* TLS of a front end: its certificate, key and authorities, read at the start and again when
 * their files change. OpenSSL is loaded with the first one. docs/internals/tls.md */
#include "base/err.h"

#include <stdbool.h>

struct options_tls;
struct tls;
struct tls_abi;
struct tls_abi_session;

/* What a front end speaks over TLS: names of ALPN, the preferred one first, each behind its
 * length. */
struct tls_protocols {
    const char *names;
    bool needed; /* who names none is sent away */
};

/* tls_new - read and check the files of the options.
 * front    how the options are called: "http"; static
 * o        borrowed until tls_free
 * ret      NULL where they do not ask for TLS
 * errors   INVALID_ARG, NOT_FOUND and so on, which name the option, the file, and what is wrong
 *          with it. A certificate that has expired, or is not valid yet, is warned of
 * Blocks. */
struct err *tls_new(const char *front, const struct options_tls *o,
                    const struct tls_protocols *protocols, struct tls **ret);

/* tls_look - read the files again if they have changed, and are at rest since the last look.
 * Connections that come from then on use them; where they cannot be used, a line of the log says
 * why and nothing changes. Blocks: one thread, no loop. NULL is fine.
 * now  do not wait for the next look */
void tls_look(struct tls *t, bool now);

/* tls_session - for a new connection. Any thread.
 * ret_abi  what to call it with
 * returns  NULL when there is no memory */
struct tls_abi_session *tls_session(struct tls *t, int fd, const struct tls_abi **ret_abi);

/* tls_front - as given to tls_new. */
const char *tls_front(const struct tls *t);

/* tls_free - when it has no connection any more. NULL is fine. */
void tls_free(struct tls *t);
