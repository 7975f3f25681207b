#pragma once
/* What ends with the last server: called by gpu_close, while the GPUs are still open. */

/* gpu_memory_close - free every block, also those that nobody gave back.
 * gpu_copy_close - free the streams. */
void gpu_memory_close(void);
void gpu_copy_close(void);
