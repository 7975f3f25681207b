#pragma once
/* Memory of a GPU that another process has allocated, opened by the handle that CUDA gave that
 * process. The driver is asked, which may block: no lock is held. */
#include "base/err.h"

#include <stdint.h>

struct cuda_ipc_handle;

/* region_cuda_open - open it.
 * name    of the region, for errors and the log
 * ret     where it begins; nobody but CUDA can touch it
 * errors  INVALID_ARG when there is no such GPU or memory, or it has less than byte_size bytes, in
 *         the reference's words, which say no more; what the driver said is in the log */
struct err *region_cuda_open(const char *name, const struct cuda_ipc_handle *handle, int64_t device,
                             uint64_t byte_size, uint8_t **ret);

/* region_cuda_close - nobody uses it any more. What opened it twice closes it twice. */
void region_cuda_close(const char *name, int64_t device, uint8_t *base);
