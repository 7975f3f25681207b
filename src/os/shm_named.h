#pragma once
/* POSIX shared memory by its name: what somebody else made, and what others shall open. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that was opened: its bytes then, and which it is, whatever name it has. */
struct shm_named {
    uint64_t bytes;
    uint64_t device;
    uint64_t inode;
};

/* shm_named_open - open it for reading and writing.
 * key       any number of slashes, and a name without any
 * returns   a descriptor, the caller's (shm_close); -1: there is none that may be opened, the name
 *           is no name, or what has it is no memory */
int shm_named_open(const char *key, struct shm_named *ret);

/* shm_named_create - make `bytes` of zeros under a name that nobody has; of this user only.
 * ret_fd  the caller's (shm_close)
 * errors  UNAVAILABLE: the name is taken, or there is no room */
struct err *shm_named_create(const char *key, uint64_t bytes, int *ret_fd);

/* shm_named_remove - the name is free again; who has the memory open keeps it. */
void shm_named_remove(const char *key);

/* shm_named_is_ours - this process has the memory mapped for a purpose of its own (it belongs to a
 * backend, or to a library): by any mapping that is not watched (os/shm_guard.h). Reads the list of
 * mappings. */
bool shm_named_is_ours(const struct shm_named *m);

/* shm_named_map - map some of it for reading and writing.
 * offset   of a page
 * returns  NULL and errno when it cannot be mapped; shm_unmap gives it back */
void *shm_named_map(int fd, uint64_t offset, size_t bytes);
