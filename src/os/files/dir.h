#pragma once
/* Lists the entries of a directory one by one, without heap memory and with few system calls.
 * Blocks. */
#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#define DIR_BYTES 4096u

struct dir {
    int fd;
    ssize_t len; /* bytes that the kernel returned last */
    ssize_t at;  /* position after the last entry that was returned */
    _Alignas(struct dirent64) char bytes[DIR_BYTES];
};

/* dir_init - begin with an open directory; the caller keeps the descriptor. */
void dir_init(struct dir *d, int fd);

/* dir_next - the next entry except "." and "..", in no order, valid until the next call; NULL at
 * the end, or on an error. */
const struct dirent64 *dir_next(struct dir *d);

/* dir_entry_is_dir - true for a directory; links are followed. */
bool dir_entry_is_dir(const struct dir *d, const struct dirent64 *entry);
