#pragma once
/* How many connections all listeners of the process may have: the limit of descriptors, minus
 * those open when the first listener begins, minus a reserve for what the server opens later. An
 * eighth is kept for each listener; the rest is shared. */
#include <stdbool.h>
#include <stdint.h>

/* Reserved for model files, processes of models, cloud stores, and connections that are being
 * refused. */
#define QUOTA_RESERVE 128u

/* quota_open - a listener begins; returns how many places are kept for it.
 * quota_close - a listener has ended, and has no connection any more. */
uint32_t quota_open(void);
void quota_close(uint32_t kept);

/* quota_places - how many connections all listeners may have together, 0 before the first one
 * begins. Any thread. */
uint64_t quota_places(void);

/* quota_shared - how many of the places that are kept for no listener are taken, and how many there
 * are: when all are taken, a listener refuses what its own share has no place for. Any thread. */
void quota_shared(uint64_t *ret_taken, uint64_t *ret_limit);

/* quota_files - how many files the process might open when the first listener began. Any
 * thread. */
uint64_t quota_files(void);

/* quota_take - a listener has counted one more connection. Returns false if there is no place
 * for it: the caller then refuses it, counts it down again, and gives its place back like any
 * other. So the result depends only on the counts, whichever connection ends first.
 * before  the count before that connection. Any thread */
bool quota_take(uint32_t kept, uint32_t before);

/* quota_give - a listener has counted one connection less.
 * before  the count with that connection */
void quota_give(uint32_t kept, uint32_t before);
