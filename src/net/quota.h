#pragma once
/* How many connections all listeners of the process may have: what its limit of descriptors
 * leaves after those that are open when the first listener begins, and a reserve for what the
 * server opens later. An eighth is kept for each listener, whatever the others have; the rest is
 * for whoever comes first. */
#include <stdbool.h>
#include <stdint.h>

/* Model files, processes of models, cloud stores, connections that are being refused. */
#define QUOTA_RESERVE 128u

/* quota_open - a listener begins; returns how many places are kept for it. quota_close - it has
 * ended, and has no connection any more. */
uint32_t quota_open(void);
void quota_close(uint32_t kept);

/* quota_take - a listener counted one more; false when there is no place for it: the caller
 * refuses it, counts it out again, and gives its place back like any other. What was taken and
 * given then depends on the counts alone, whichever connection goes first.
 * before  what it had counted before. Any thread */
bool quota_take(uint32_t kept, uint32_t before);

/* quota_give - a listener counted one less.
 * before  what it had counted with that one */
void quota_give(uint32_t kept, uint32_t before);
