#pragma once
/* A listening socket that every worker of the server watches (EPOLLEXCLUSIVE: one of them wakes
 * up per connection). Whoever accepts a connection hands it to the worker with the fewest; from
 * then on only that worker's thread touches it.
 *
 * Life: listener_open, listener_stop, listener_free. Each connection is counted from accept
 * until listener_closed. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct listener;
struct server;
struct worker;

/* listener_accepted_fn - a new connection.
 * w      the worker it belongs to; called on its thread
 * fd     non-blocking, close-on-exec, TCP_NODELAY; the callee's, who calls sock_close and then
 *        listener_closed
 * owner  as given to listener_open */
typedef void (*listener_accepted_fn)(struct worker *w, int fd, void *owner);

/* listener_refused_fn - a connection over the limit: say so in the protocol's words with one
 * write that may fail; must not keep fd, which the listener closes afterwards. Runs on the
 * thread of some worker. */
typedef void (*listener_refused_fn)(int fd, void *owner);

/* listener_open - listen, and let every worker of the server accept.
 * s                borrowed until listener_free; its workers may run already or start later
 * address          as sock_listen takes it
 * port             0 = the system chooses: see listener_port
 * reuse            let other processes share the port
 * max_connections  most connections open at once; 0 = as many as there are places for (quota.h),
 *                  which limit it in any case
 * accepted         must not be NULL
 * refused          NULL: connections over the limit are just closed
 * errors           those of sock_listen
 * Any thread, before listener_stop. */
struct err *listener_open(struct server *s, const char *address, uint16_t port, bool reuse,
                          uint32_t max_connections, listener_accepted_fn accepted,
                          listener_refused_fn refused, void *owner, struct listener **ret);

/* listener_port - the TCP port it is bound to; 0 for Unix sockets. */
uint16_t listener_port(const struct listener *l);

/* listener_stop - accept no more and close the socket. When it returns, `accepted` will not be
 * called again. NULL, and a second call, are fine. Blocks until every worker has let go: not for
 * worker threads; the workers must run. */
void listener_stop(struct listener *l);

/* listener_closed - a connection that `accepted` got from l is gone; called on its worker's
 * thread, after sock_close.
 * strangers  how many of late were of no use (turns.h): where they are many, w accepts behind
 *            everything else */
void listener_closed(struct listener *l, struct worker *w, uint32_t strangers);

/* listener_connections - how many are open now. Any thread. */
uint32_t listener_connections(const struct listener *l);

/* listener_free - after listener_stop, when no connection is left. NULL is fine. */
void listener_free(struct listener *l);
