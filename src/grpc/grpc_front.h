#pragma once
/* The gRPC front end of a server (port 8001): a listening socket, and connections on the
 * workers' loops.
 *
 * Life: grpc_front_open; grpc_front_stop and grpc_front_close while the workers still run;
 * grpc_front_free. */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct door;
struct grpc_front;
struct grpc_service;
struct server;
/* grpc_front_open - listen and serve: grpc_methods_service (grpc/api).
 * s        borrowed until grpc_front_free
 * address  as for sock_listen; port 0 = the system chooses: see grpc_front_port
 * door     what it points to is borrowed until grpc_front_free
 * errors   those of listener_open
 * Any thread but the workers'. */
struct err *grpc_front_open(struct server *s, const struct grpc_service *service,
                            const char *address, uint16_t port, bool reuse, const struct door *door,
                            struct grpc_front **ret);

/* grpc_front_share - see listener_share. NULL is fine. */
struct err *grpc_front_share(struct grpc_front *f);

/* grpc_front_port - the port it listens on. */
uint16_t grpc_front_port(const struct grpc_front *f);

/* grpc_front_connections - the number of open connections. Any thread. */
unsigned grpc_front_connections(const struct grpc_front *f);

/* grpc_front_stop - tell every client to open no more calls (GOAWAY), close connections without
 * a call, let calls in flight finish until `until`, then cut the rest. Connections that are
 * opened from now on are late: their calls are told that the server stops. Blocks: not for
 * worker threads; the workers must run. NULL, and a second call, are fine.
 * returns  how many calls were cut */
unsigned grpc_front_stop(struct grpc_front *f, time_ns until);

/* grpc_front_close - after grpc_front_stop: stop accepting and close late connections. On return
 * there is no connection; answers for closed connections are dropped. Blocks, as
 * grpc_front_stop. NULL, and a second call, are fine. */
void grpc_front_close(struct grpc_front *f);

/* grpc_front_free - free it after grpc_front_close. NULL is fine. */
void grpc_front_free(struct grpc_front *f);
