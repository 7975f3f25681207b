#pragma once
#include "base/err.h"

#include <stddef.h>

struct cuda_driver_symbol;
struct dl;
struct gpu_list;

/* gpu_open_library - open a library of the driver.
 * to      each symbol's address is stored there, at its offset
 * errors  it is not there, or lacks one of them */
struct err *gpu_open_library(const char *name, const struct cuda_driver_symbol *symbols,
                             size_t count, void *to, struct dl **ret);

/* gpu_meter_found - there are GPUs. The list stays until gpu_meter_close. */
void gpu_meter_found(const struct gpu_list *gpus);

/* What ends with the last server: called by gpu_close, while the GPUs are still open.
 * gpu_meter_close - end the thread.
 * gpu_memory_close - free every block, also those that nobody gave back.
 * gpu_copy_close - free the streams. */
void gpu_meter_close(void);
void gpu_memory_close(void);
void gpu_copy_close(void);
