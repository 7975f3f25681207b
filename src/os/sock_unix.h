#pragma once
/* Listening Unix sockets: addresses "unix:PATH", and their files. */
#include "base/err.h"

#include <stdbool.h>

#define SOCK_UNIX_PATH_BYTES 107 /* the longest path */

/* sock_unix_path - the path inside such an address; NULL = it is not one. */
const char *sock_unix_path(const char *address);

/* sock_unix_path_ok - true if a socket can have this path: it is not empty and not too long. */
bool sock_unix_path_ok(const char *path);

/* sock_unix_listen - listen at a path, as sock_listen. The socket file of a dead server is
 * replaced; nothing else is.
 * errors  UNAVAILABLE: "cannot listen on unix:PATH: Address already in use" if somebody listens
 *         there, or might; INVALID_ARG for an invalid path, or if the path is something other
 *         than a socket */
struct err *sock_unix_listen(const char *path, int *ret_fd);

/* sock_unix_connect - connect to a path, as sock_connect. */
struct err *sock_unix_connect(const char *path, int *ret_fd);

/* sock_unix_look - whether sock_unix_listen would succeed at a path; changes nothing.
 * errors  those of sock_unix_listen, as far as that can be told */
struct err *sock_unix_look(const char *path);

/* sock_unix_file - the file that a listening socket has just made; NULL if it is not a Unix
 * socket. */
struct sock_unix_file;
struct sock_unix_file *sock_unix_file(int listen_fd);

/* sock_unix_remove - remove the file, unless it has been replaced, and free f. NULL is fine. */
void sock_unix_remove(struct sock_unix_file *f);
