#pragma once
/* A listening socket that every worker of the server watches (EPOLLEXCLUSIVE: one of them wakes
 * up per connection). The worker that accepts a connection gives it to the worker with the
 * fewest connections; from then on only that worker's thread uses it.
 *
 * Life: listener_open, listener_stop, listener_free. A connection is counted from accept until
 * listener_closed. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct listener;
struct server;
struct worker;

/* listener_accepted_fn - called for a new connection.
 * w      the worker that the connection belongs to; called on its thread
 * fd     non-blocking, close-on-exec, TCP_NODELAY; owned by the callee, which calls sock_close
 *        and then listener_closed
 * owner  as given to listener_open */
typedef void (*listener_accepted_fn)(struct worker *w, int fd, void *owner);

/* listener_refused_fn - a connection is over the limit: tell the client in the protocol's words
 * with one write, which may fail. Must not keep fd; the listener closes it afterwards. Called on
 * the thread of some worker. */
typedef void (*listener_refused_fn)(int fd, void *owner);

/* listener_open - listen, and let every worker of the server accept connections.
 * s                borrowed until listener_free; its workers may already run, or start later
 * address          as for sock_listen
 * port             0 = the system chooses: see listener_port
 * reuse            let other processes share the port; no connection comes before listener_share
 * max_connections  the most connections open at once; 0 = only limited by the places of quota.h,
 *                  which are a limit in any case
 * accepted         must not be NULL
 * refused          NULL: connections over the limit are closed without a message
 * errors           those of sock_listen
 * Any thread, before listener_stop. */
struct err *listener_open(struct server *s, const char *address, uint16_t port, bool reuse,
                          uint32_t max_connections, listener_accepted_fn accepted,
                          listener_refused_fn refused, void *owner, struct listener **ret);

/* listener_share - a listener on a shared port takes its share of the connections from now on.
 * Others, and those that stopped, are left alone. Any thread but a worker's.
 * errors  those of sock_listen_shared */
struct err *listener_share(struct listener *l);

/* listener_port - the TCP port it is bound to; 0 for Unix sockets. */
uint16_t listener_port(const struct listener *l);

/* listener_stop - stop accepting, and close the socket. After it, `accepted` is not called
 * again. NULL and a second call are fine. Blocks until every worker has stopped watching: not
 * for worker threads; the workers must run. */
void listener_stop(struct listener *l);

/* listener_closed - a connection that `accepted` got is gone; called on its worker's thread,
 * after sock_close.
 * strangers  how many recent connections sent no request (turns.h). If there are many, w accepts
 *            only after all other work */
void listener_closed(struct listener *l, struct worker *w, uint32_t strangers);

/* listener_connections - the number of open connections. Any thread. */
uint32_t listener_connections(const struct listener *l);

/* listener_free - free it after listener_stop, when no connection is left. NULL is fine. */
void listener_free(struct listener *l);
