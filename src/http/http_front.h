#pragma once
/* The HTTP/1.1 front ends of a server: the inference protocol (port 8000), the metrics page (port
 * 8002), and those that the services of clouds call. Each has a listening socket, and connections
 * on the workers' loops.
 *
 * Life: http_front_open, http_front_stop while the workers still run, http_front_free. */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct door;
struct http_front;
struct http_service;
struct server;
/* http_front_open - listen and serve: http_api_service or metrics_http_service (http/api), or
 * one of http/clouds.
 * s        borrowed until http_front_free
 * address  as for sock_listen; port 0 = the system chooses: see http_front_port
 * door     what it points to is borrowed until http_front_free
 * errors   those of listener_open
 * Any thread but the workers'. */
struct err *http_front_open(struct server *s, const struct http_service *service,
                            const char *address, uint16_t port, bool reuse, const struct door *door,
                            struct http_front **ret);

/* http_front_share - see listener_share. NULL is fine. */
struct err *http_front_share(struct http_front *f);

/* http_front_port - the port it listens on. */
uint16_t http_front_port(const struct http_front *f);

/* http_front_connections - the number of open connections. Any thread. */
unsigned http_front_connections(const struct http_front *f);

/* http_front_stop - stop accepting, close connections that wait for a request, let the others
 * finish their requests until `until`, then cut the rest: http_cut.h. On return there is no
 * connection; answers for closed connections are dropped. Blocks: not for worker threads; the
 * workers must run. NULL, and a second call, are fine.
 * returns  how many requests were cut */
unsigned http_front_stop(struct http_front *f, time_ns until);

/* http_front_free - free it after http_front_stop. NULL is fine. */
void http_front_free(struct http_front *f);
