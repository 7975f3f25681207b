#pragma once
/* The heap of the process: that of the C library, or that of an address sanitizer. */
#include <stdbool.h>
#include <stdint.h>

/* heap_begin - configure the heap: few arenas that return memory early, so that the memory of a
 * burst does not stay in an arena per thread, and that grow cheaply. Call it only if the process
 * belongs to the server, because a library must not change its host's heap, and before a second
 * thread is started. Does nothing under a sanitizer, which has its own heap. */
void heap_begin(void);

/* heap_keep_large - from now on keep what is freed, pieces of up to 32 MiB too, for the next who
 * needs it, until heap_empty_own and heap_give_back: for the end of a start, which takes much that
 * it needs once. May be called again. Does nothing in a process that belongs to somebody else, or
 * under a sanitizer. Any thread. */
void heap_keep_large(void);

/* heap_is_own - true after heap_begin: the process belongs to the server. */
bool heap_is_own(void);

/* heap_idle_bytes - private memory that the process holds and that no piece of the heap uses, in
 * bytes. What others hold besides the heap, such as stacks, counts along, and used pieces that
 * nobody wrote to are subtracted, so it can be negative: only a difference tells something. Takes
 * longer the more free pieces there are. Any thread. */
int64_t heap_idle_bytes(void);

/* heap_empty_own - free what the heap keeps for the calling thread, and shorten the end of its
 * arena. Only then can heap_give_back reach it all. Takes about 0.1 ms. Any thread; does nothing
 * under an address sanitizer. */
void heap_empty_own(void);

/* heap_shorten_own - shorten the end of the calling thread's arena, which some of what
 * heap_give_back reached has joined: call it behind that. Any thread; does nothing under an
 * address sanitizer, or if the heap is not the server's own. */
void heap_shorten_own(void);

/* heap_give_back - give free pages anywhere back to the system, the ends of both arenas, too, for
 * which threads are started; an address sanitizer frees its quarantine instead. Takes milliseconds
 * where many pieces lie, during which others wait for memory. Any thread. */
void heap_give_back(void);
