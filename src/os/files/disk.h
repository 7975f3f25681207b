#pragma once
/* Files that processes share: written as a whole or not at all, locked, linked, with a time of
 * last use. Blocks; not for loop threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* disk_make_dirs - make a directory and its parents if they do not exist; only this user may
 * access new ones.
 * errors  INVALID_ARG if it belongs to another user */
struct err *disk_make_dirs(const char *path);

/* disk_make_unique - a new directory below another. ret: its path, the caller's (mem_free). */
struct err *disk_make_unique(const char *below, char **ret);

/* disk_lock - take an exclusive lock with a file, which is made if needed. Held until
 * disk_unlock, or until the process ends.
 * wait     until it is free; else ret_fd is -1 if somebody holds it */
struct err *disk_lock(const char *path, bool wait, int *ret_fd);
void disk_unlock(int fd);

/* disk_write - write a small file, which appears as a whole and replaces an earlier one. */
struct err *disk_write(const char *path, const void *data, size_t len);

/* disk_remove - remove a file; it need not exist.
 * disk_rename - rename a file. */
void disk_remove(const char *path);
struct err *disk_rename(const char *from, const char *to);

/* disk_link - make `to` a second name of the file `from`, or a copy if the file system has no
 * links. A `to` from an earlier call is kept.
 * errors  NOT_FOUND if `from` does not exist */
struct err *disk_link(const char *from, const char *to);

/* disk_open_part - open a file for writing in pieces, make it if needed, and lock it. *ret_fd is
 * -1 if somebody else has locked it.
 * errors  INVALID_ARG if it is not a regular file
 * disk_close - close and unlock it. */
struct err *disk_open_part(const char *path, int *ret_fd);
void disk_close(int fd);

/* disk_size - the bytes of an open file.
 * disk_set_size - cut or extend it. */
uint64_t disk_size(int fd);
struct err *disk_set_size(int fd, uint64_t bytes);
struct err *disk_write_at(int fd, const void *data, size_t len, uint64_t at);

/* disk_read_at - read up to len bytes; *ret_len is smaller only at the end of the file. */
struct err *disk_read_at(int fd, void *data, size_t len, uint64_t at, size_t *ret_len);

/* disk_sync - make what was written survive a power loss. */
struct err *disk_sync(int fd);

/* disk_hide - keep other users from the file (mode 0600) if it belongs to this user. */
struct err *disk_hide(int fd);

/* disk_seal - make the file read-only. */
void disk_seal(int fd);

/* disk_open_read - open a file for disk_read_at. */
struct err *disk_open_read(const char *path, int *ret_fd);

struct disk_age {
    uint64_t bytes;
    uint64_t links;
    uint64_t used_ns; /* time of the last disk_use, wall clock */
};

/* disk_use - note that a file is used now.
 * disk_look - false if the file does not exist. */
void disk_use(const char *path);
bool disk_look(const char *path, struct disk_age *ret);
