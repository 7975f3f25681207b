#pragma once
/* Unix sockets to listen at: addresses "unix:PATH", and the files that stand for them. */
#include "base/err.h"

#include <stdbool.h>

#define SOCK_UNIX_PATH_BYTES 107 /* the longest path */

/* sock_unix_path - the path of such an address, within it; NULL = it is none. */
const char *sock_unix_path(const char *address);

/* sock_unix_path_ok - whether a socket can have this path: it is neither empty nor too long. */
bool sock_unix_path_ok(const char *path);

/* sock_unix_listen - listen at a path, as sock_listen does. The socket of a server that is gone
 * is replaced; nothing else is.
 * errors  UNAVAILABLE: "cannot listen on unix:PATH: Address already in use" when somebody
 *         listens there, or may; INVALID_ARG for a path that is not ok, or where something lies
 *         that is no socket */
struct err *sock_unix_listen(const char *path, int *ret_fd);

/* sock_unix_file - the file that a socket which listens has just made; NULL when it is no Unix
 * socket. */
struct sock_unix_file;
struct sock_unix_file *sock_unix_file(int listen_fd);

/* sock_unix_remove - remove the file, unless it is another one by now, and free what tells of
 * it. NULL is fine. */
void sock_unix_remove(struct sock_unix_file *f);
