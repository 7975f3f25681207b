#pragma once
/* The heap of the process, whichever allocator it is: the C library's, or that of an address
 * sanitizer. */
#include <stddef.h>

/* heap_begin - few heaps that give back early, so that the memory of a burst does not stay in a
 * heap per thread, and grow cheaply; only where the process is the server's own: a library in
 * somebody else's process leaves it as it is. Before the process has another thread. Does
 * nothing under a sanitizer, which brings a heap of its own. */
void heap_begin(void);

/* heap_free_bytes - free bytes in the heap, also those whose pages it gave back. Any thread. */
size_t heap_free_bytes(void);

/* heap_trim - give the system back what is free: what the calling thread keeps for itself, the
 * end of the heap that it uses, and whole pages wherever they lie. An address sanitizer lets go
 * of what it kept to see whether it is used once more. Takes some 0.1 ms. Any thread. */
void heap_trim(void);
