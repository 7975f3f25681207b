#pragma once
/* Memory that two processes share: an anonymous file, passed on as a descriptor and gone with
 * its last holder. Its size is sealed, so that no holder can take pages away under another. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* shm_create - `bytes` of zeros, of which only what is touched takes memory.
 * name    shown by the system's tools
 * errors  UNAVAILABLE when the system gives none */
struct err *shm_create(const char *name, size_t bytes, int *ret_fd);

/* shm_sealed - whether a descriptor is such memory of at least `bytes`. */
bool shm_sealed(int fd, size_t bytes);

/* shm_map - its first `bytes`, for reading and writing; NULL when there is no room. */
void *shm_map(int fd, size_t bytes);
void shm_unmap(void *p, size_t bytes);

/* shm_forget - give the memory of a range of whole pages back to the system; it reads as zeros
 * again. */
void shm_forget(int fd, size_t offset, size_t bytes);
void shm_close(int fd);
