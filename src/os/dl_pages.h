#pragma once
/* Memory that holds code of the process's libraries. */

/* dl_pages_forget - take out of memory the code and constants that loading touched and that may
 * never be needed again: relocation tables, symbols, and what only runs at a start. Of libraries
 * for models this is most of what is resident: 22 of 42 MiB with 100 ONNX models. The kernel maps
 * what is touched again, mostly without reading the file.
 * Pages that the process has written stay, also in code; the first write to a page at the very
 * moment of the call may be lost, so nobody may patch code meanwhile. Takes about 0.4 ms. Does
 * nothing in a process that belongs to somebody else (heap_begin was not called), or where
 * /proc/self/pagemap cannot be read. Any thread. */
void dl_pages_forget(void);
