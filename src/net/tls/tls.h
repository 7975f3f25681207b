#pragma once
/* TLS of a front end: its certificate, key and certificate authorities, which are read at the
 * start and again when their files change. OpenSSL is loaded with the first one.
 * docs/internals/tls.md */
#include "base/err.h"

#include <stdbool.h>

struct options_tls;
struct tls;
struct tls_abi;
struct tls_abi_session;

/* The ALPN names that a front end supports, the preferred one first, each after its length. */
struct tls_protocols {
    const char *names;
    bool needed; /* a client that names no protocol is refused */
};

/* tls_new - read and check the files that the options name.
 * front    the prefix of the options: "http"; static
 * o        borrowed until tls_free
 * ret      NULL if the options do not ask for TLS
 * errors   INVALID_ARG, NOT_FOUND and so on, which name the option, the file and the problem. A
 *          certificate that has expired, or is not valid yet, or such an authority behind it in
 *          the file, gives a warning
 * Blocks. */
struct err *tls_new(const char *front, const struct options_tls *o,
                    const struct tls_protocols *protocols, struct tls **ret);

/* tls_look - read the files again if they have changed, and have not changed since the last
 * look. New connections then use them. If they cannot be used, a log line says why, and nothing
 * changes; each look tries again then. Blocks: one thread, not a loop. NULL is fine.
 * now  do not wait for the next look */
void tls_look(struct tls *t, bool now);

/* tls_session - make the session of a new connection. Any thread.
 * ret_abi  the functions for the session
 * returns  NULL if there is no memory */
struct tls_abi_session *tls_session(struct tls *t, int fd, const struct tls_abi **ret_abi);

/* tls_front - as given to tls_new. */
const char *tls_front(const struct tls *t);

/* tls_free - free it when no connection is left. NULL is fine. */
void tls_free(struct tls *t);
