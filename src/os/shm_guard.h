#pragma once
/* Mappings of memory that others may cut short while it is used here. Whoever touches what is gone
 * gets SIGBUS, which would end the process. The executable's handler asks shm_guard_fault first: it
 * maps zeros in place of the whole mapping, and notes that it was cut. Whoever used it asks
 * shm_guard_cut before believing what was read, or that what was written has arrived. */
#include <stdbool.h>
#include <stddef.h>

/* How many mappings are watched at a time, at most. */
#define SHM_GUARD_MAPPINGS 4096

/* shm_guard_add - watch a mapping.
 * start    of a page; bytes > 0, the last page counts whole
 * returns  its number, -1 when there are SHM_GUARD_MAPPINGS already. Any thread. */
int shm_guard_add(void *start, size_t bytes);

/* shm_guard_remove - nobody uses the mapping any more; before it is unmapped. Any thread. */
void shm_guard_remove(int number);

/* shm_guard_cut - something of it was gone when it was touched. For ever. Any thread. */
bool shm_guard_cut(int number);

/* shm_guard_covers - whether an address lies in a watched mapping. Any thread. */
bool shm_guard_covers(const void *address);

/* shm_guard_fault - for the handler of SIGBUS, on the thread that touched the address: allocates
 * nothing, takes no lock, keeps errno.
 * returns  whether the instruction may be tried again; false: the address is of no watched
 *          mapping, or no zeros could be mapped */
bool shm_guard_fault(void *address);
