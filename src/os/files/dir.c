#include "os/files/dir.h"

#include <string.h>
#include <sys/stat.h>

void dir_init(struct dir *d, int fd)
{
    d->fd = fd;
    d->len = 0;
    d->at = 0;
}

const struct dirent64 *dir_next(struct dir *d)
{
    for (;;) {
        if (d->at == d->len) {
            d->at = 0;
            d->len = getdents64(d->fd, d->bytes, sizeof(d->bytes));
            if (d->len <= 0) {
                d->len = 0;
                return NULL;
            }
        }
        const struct dirent64 *entry = (const void *)(d->bytes + d->at);
        d->at += entry->d_reclen;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry;
    }
}

bool dir_entry_is_dir(const struct dir *d, const struct dirent64 *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    return fstatat(d->fd, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}
