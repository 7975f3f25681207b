#pragma once
/* A server with its front ends inside another program, which has a command line for it: what the
 * bindings need beside the C API. Signals stay the program's. */
#include "base/err.h"

#include <stdint.h>

struct hosted;
struct hosted_more;
struct server;

/* hosted_open - start the server of a command line, and load its models. Blocks until they are
 * ready or have failed. The settings of the log belong to the process: those of the first server
 * hold while it lives.
 * argv    copied; argv[0] is not read
 * more    copied; see nereid_private.h
 * errors  INVALID_ARG for a bad option; those of the start, of opening a front end, of a model that
 *         does not load (--exit-on-error) */
struct err *hosted_open(int argc, char *const *argv, const struct hosted_more *more,
                        struct hosted **ret);

/* hosted_server - the server, for the C API; it must not be stopped or freed there. */
struct server *hosted_server(const struct hosted *h);

/* hosted_ports - the ports of HTTP, gRPC and metrics; 0 = not served. */
void hosted_ports(const struct hosted *h, uint16_t ret_ports[3]);

/* hosted_stop - stop the server; requests under way are answered first. Blocks. Calls of the C API
 * that other threads have begun go on, or fail with UNAVAILABLE.
 * errors  INTERNAL when --exit-timeout-secs passed: stopping goes on, and `h` is freed never */
struct err *hosted_stop(struct hosted *h);

/* hosted_free - free a server that has stopped, when the last call of the C API has returned. */
void hosted_free(struct hosted *h);
