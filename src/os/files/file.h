#pragma once
/* Files and directories of the local disk: whole reads with a limit, listings. Blocks; not for
 * loop threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* file_read - read a whole regular file.
 * max      more bytes than this are an error
 * ret      followed by NUL; the caller frees it (mem_free)
 * errors   NOT_FOUND if it does not exist; INVALID_ARG if it is not a regular file or is too
 *          large; else INTERNAL */
struct err *file_read(const char *path, size_t max, char **ret, size_t *ret_len);

/* file_read_fd - the same for an open descriptor, which the caller keeps; path is used in
 * messages. */
struct err *file_read_fd(int fd, const char *path, size_t max, char **ret, size_t *ret_len);

struct file_entry {
    char *name;
    bool is_dir; /* links are followed */
};

struct file_list {
    struct file_entry *entries; /* sorted by name; without names that begin with a dot */
    size_t count;
};

/* file_list_dir - the entries of a directory; at most `max`. */
struct err *file_list_dir(const char *path, size_t max, struct file_list *ret);
void file_list_fini(struct file_list *l);

/* file_append - open a file for appending; make it if it does not exist. Waits for nobody.
 * ret_fd  close-on-exec; writing to a pipe does not wait; owned by the caller
 * errors  INVALID_ARG for a named pipe that nobody reads; else those of the system */
struct err *file_append(const char *path, int *ret_fd);

/* file_append_look - whether file_append would succeed; leaves nothing behind.
 * errors  those of file_append, as far as that can be told */
struct err *file_append_look(const char *path);

/* file_append_anew - after the file was renamed: open the path again under the same descriptor
 * of file_append, which stays valid for other threads. */
struct err *file_append_anew(const char *path, int fd);

/* file_exists, file_is_dir, file_is_pipe - false also if access is denied. */
bool file_exists(const char *path);
bool file_is_dir(const char *path);
bool file_is_pipe(const char *path); /* a named one */

/* file_join - "a/b"; the caller frees it (mem_free). */
char *file_join(const char *a, const char *b);

/* file_absolute - the absolute path without links; if the path does not exist, a copy of it. The
 * caller frees it (mem_free). */
char *file_absolute(const char *path);
