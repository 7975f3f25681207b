#pragma once
/* Files and directories of the local disk: whole reads with a limit, listings. Blocks; not for
 * loop threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* file_read - the whole of a regular file.
 * max      more bytes than this are an error
 * ret      ends in NUL beyond *ret_len; the caller's (mem_free)
 * errors   NOT_FOUND when it is not there; INVALID_ARG when it is no regular file or too large;
 *          else INTERNAL */
struct err *file_read(const char *path, size_t max, char **ret, size_t *ret_len);

/* file_read_fd - the same of an open descriptor, which stays the caller's; path is how messages
 * name it. */
struct err *file_read_fd(int fd, const char *path, size_t max, char **ret, size_t *ret_len);

struct file_entry {
    char *name;
    bool is_dir; /* links are followed */
};

struct file_list {
    struct file_entry *entries; /* by name; without "." and ".." and names that begin with a dot */
    size_t count;
};

/* file_list_dir - the entries of a directory; at most `max`. */
struct err *file_list_dir(const char *path, size_t max, struct file_list *ret);
void file_list_fini(struct file_list *l);

/* file_append - open a file to append to, make it when it is not there.
 * ret_fd  close-on-exec; the caller's */
struct err *file_append(const char *path, int *ret_fd);

/* file_append_anew - open the path again in place of a descriptor of file_append, which stays
 * valid for other threads all along: after the file was renamed. */
struct err *file_append_anew(const char *path, int fd);

/* file_exists, file_is_dir - false also for what may not be looked at. */
bool file_exists(const char *path);
bool file_is_dir(const char *path);

/* file_join - "a/b", the caller's (mem_free). */
char *file_join(const char *a, const char *b);

/* file_absolute - the absolute path of what is there, without links; of what is not, a copy. The
 * caller's (mem_free). */
char *file_absolute(const char *path);
