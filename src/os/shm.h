#pragma once
/* Memory that two processes share: an anonymous file, passed as a descriptor, and freed with its
 * last holder. Its size is sealed, so that no holder can remove pages that another one uses. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* shm_create - make `bytes` of zeros; only touched pages take memory.
 * name    shown by system tools
 * errors  UNAVAILABLE if the system has none */
struct err *shm_create(const char *name, size_t bytes, int *ret_fd);

/* shm_sealed - true if a descriptor is such memory with at least `bytes`. */
bool shm_sealed(int fd, size_t bytes);

/* shm_map - map the first `bytes` for reading and writing; NULL if there is no room. */
void *shm_map(int fd, size_t bytes);
void shm_unmap(void *p, size_t bytes);

/* shm_forget - give the memory of a range of whole pages back to the system; it then reads as
 * zeros. */
void shm_forget(int fd, size_t offset, size_t bytes);
void shm_close(int fd);
