#pragma once
/* The entries of a directory one by one, without the heap and with as few system calls as it
 * takes. Blocks. */
#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#define DIR_BYTES 4096u

struct dir {
    int fd;
    ssize_t len; /* of what the kernel gave last */
    ssize_t at;  /* behind the entry that was given out last */
    _Alignas(struct dirent64) char bytes[DIR_BYTES];
};

/* dir_init - look at a directory that is open; the descriptor stays the caller's. */
void dir_init(struct dir *d, int fd);

/* dir_next - the next entry but "." and "..", in no order, good until the next call; NULL at the
 * end, or where nothing more can be read. */
const struct dirent64 *dir_next(struct dir *d);

/* dir_entry_is_dir - links are followed. */
bool dir_entry_is_dir(const struct dir *d, const struct dirent64 *entry);
