#pragma once
/* The heap of the C library, where the process is the server's own: a library in somebody else's process leaves it as it is. */

/* heap_begin - few heaps that give back early, so that the memory of a burst does not stay in a heap per thread, and grow cheaply.
 * Before the process has another thread. Does nothing under a sanitizer, which brings a heap of its own. */
void heap_begin(void);
