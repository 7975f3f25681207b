#pragma once
/* A server inside another program: the objects behind TRITONSERVER_ServerOptions and
 * TRITONSERVER_Server of the C API. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct embed_options;
struct server;

/* embed_options_new - make options with the defaults. */
struct embed_options *embed_options_new(void);
void embed_options_free(struct embed_options *o);

/* embed_options_of - the object behind an ABI handle; NULL if the handle is none. */
struct embed_options *embed_options_of(const void *handle);

/* embed_options_set - set an option of the command line (options.def), or add to it if it may be
 * given several times. Options of the log, which belongs to the process, take effect at once.
 * value   copied
 * errors  INVALID_ARG for a bad value; UNSUPPORTED, naming the option, for an option that this
 *         version does not support */
struct err *embed_options_set(struct embed_options *o, const char *name, const char *value);

/* embed_options_setf - as embed_options_set, with a formatted value. */
__attribute__((format(printf, 3, 4))) struct err *
embed_options_setf(struct embed_options *o, const char *name, const char *fmt, ...);

/* embed_new - start a server and load its models. Blocks until they are ready or have failed.
 * options  borrowed for the call
 * errors   INVALID_ARG without a repository; those of server_new, server_start and server_load.
 *          With exit-on-error off, the last is logged instead, and the server is not ready */
struct err *embed_new(const struct embed_options *options, struct server **ret);

/* embed_server_of - the server behind an ABI handle, made by embed_new or by the executable;
 * NULL if the handle is none. */
struct server *embed_server_of(const void *handle);

/* embed_stop - stop the server for good; requests in flight are answered. If it is called again,
 * it waits for the stop in progress.
 * errors  INTERNAL if the timeout passed first: stopping goes on; UNSUPPORTED for the server of
 *         the executable */
struct err *embed_stop(struct server *s);

/* embed_free - call embed_stop, then free the server. NULL is fine.
 * errors  those of embed_stop; the server is not freed then */
struct err *embed_free(struct server *s);

/* embed_set_exit_timeout - set the timeout for later calls of embed_stop, in seconds.
 * errors  UNSUPPORTED for the server of the executable */
struct err *embed_set_exit_timeout(struct server *s, uint32_t secs);
