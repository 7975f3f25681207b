#pragma once
/* Files that processes share: made as a whole or not at all, locked, linked, aged. Blocks; not
 * for loop threads. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* disk_make_dirs - a directory and those above it, where they are not there; new ones are this
 * user's alone.
 * errors  INVALID_ARG when it is another user's */
struct err *disk_make_dirs(const char *path);

/* disk_make_unique - a new directory below another. ret: its path, the caller's (mem_free). */
struct err *disk_make_unique(const char *below, char **ret);

/* disk_lock - an exclusive lock by file, made when it is not there; held until disk_unlock, or
 * the end of the process.
 * wait     until it is free; else ret_fd is -1 when somebody holds it */
struct err *disk_lock(const char *path, bool wait, int *ret_fd);
void disk_unlock(int fd);

/* disk_write - a small file that appears as a whole, in place of one that is there. */
struct err *disk_write(const char *path, const void *data, size_t len);

/* disk_remove, disk_rename - a file; disk_remove: one that is not there is fine. */
void disk_remove(const char *path);
struct err *disk_rename(const char *from, const char *to);

/* disk_link - the file `to` becomes a second name of `from`, or a copy where the file system has
 * no links; one that is there already, by an earlier call, stays.
 * errors  NOT_FOUND when `from` is not there */
struct err *disk_link(const char *from, const char *to);

/* disk_open_part - open a file to be written in pieces, made when it is not there, and lock it.
 * *ret_fd is -1 when somebody else has it. disk_close - and unlock. */
struct err *disk_open_part(const char *path, int *ret_fd);
void disk_close(int fd);

/* disk_size - bytes of an open file. disk_set_size - cut or extend it. */
uint64_t disk_size(int fd);
struct err *disk_set_size(int fd, uint64_t bytes);
struct err *disk_write_at(int fd, const void *data, size_t len, uint64_t at);

/* disk_read_at - up to len bytes; *ret_len is less only at the end. */
struct err *disk_read_at(int fd, void *data, size_t len, uint64_t at, size_t *ret_len);

/* disk_sync - what was written stays, also when the machine loses power. */
struct err *disk_sync(int fd);

/* disk_seal - nobody may write it any more. */
void disk_seal(int fd);

/* disk_open_read - for disk_read_at. */
struct err *disk_open_read(const char *path, int *ret_fd);

struct disk_age {
    uint64_t bytes;
    uint64_t links;
    uint64_t used_ns; /* when disk_use was called last, wall time */
};

/* disk_use - remember that a file is used now. disk_look - false when it is not there. */
void disk_use(const char *path);
bool disk_look(const char *path, struct disk_age *ret);
