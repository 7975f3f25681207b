#pragma once
/* A server inside another program: what the TRITONSERVER_ServerOptions and TRITONSERVER_Server
 * of the C API are made of. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct embed_options;
struct server;

/* embed_options_new - the defaults. */
struct embed_options *embed_options_new(void);
void embed_options_free(struct embed_options *o);

/* embed_options_of - the object behind an ABI handle; NULL when it is none. */
struct embed_options *embed_options_of(const void *handle);

/* embed_options_set - set an option of the command line (options.def), or add to it where it may
 * be given more than once. What it says about the log, which belongs to the process, holds at
 * once.
 * value   copied
 * errors  INVALID_ARG for a bad value; UNSUPPORTED, naming the option, for what this version
 *         does not do */
struct err *embed_options_set(struct embed_options *o, const char *name, const char *value);

/* embed_options_setf - the same with a formatted value. */
__attribute__((format(printf, 3, 4))) struct err *
embed_options_setf(struct embed_options *o, const char *name, const char *fmt, ...);

/* embed_new - start a server and load its models; blocks until they are ready or have failed.
 * options  borrowed for the call
 * errors   INVALID_ARG without a repository; what server_new, server_start and server_load say.
 *          With exit-on-error off the last is logged instead, and the server is not ready */
struct err *embed_new(const struct embed_options *options, struct server **ret);

/* embed_server_of - the server behind an ABI handle, whether embed_new made it or the
 * executable; NULL when it is none. */
struct server *embed_server_of(const void *handle);

/* embed_stop - stop for good: what is under way is answered. Again is fine, and waits for what
 * goes on.
 * errors  INTERNAL when the time-out passed first: stopping goes on; UNSUPPORTED for the server
 *         of an executable */
struct err *embed_stop(struct server *s);

/* embed_free - embed_stop, then free it. NULL is fine.
 * errors  those of embed_stop; the server stays then */
struct err *embed_free(struct server *s);

/* embed_set_exit_timeout - in seconds, for later calls of embed_stop.
 * errors  UNSUPPORTED for the server of an executable */
struct err *embed_set_exit_timeout(struct server *s, uint32_t secs);
