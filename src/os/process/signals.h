#pragma once
/* The signals that end the process, taken by the main thread where it waits; no handler runs
 * anywhere. */
#include "os/clock.h"

#include <stdbool.h>

/* signals_block - from here on SIGINT and SIGTERM wait until signals_wait takes them; threads
 * started later inherit it. SIGPIPE is ignored.
 * hangup  SIGHUP waits, too */
void signals_block(bool hangup);

/* signals_wait - the next of them; 0 when `until` passes first (TIME_NEVER = no limit). Main
 * thread. */
int signals_wait(time_ns until);

/* signals_wake - make the thread in signals_wait return SIGTERM. Any thread. */
void signals_wake(void);
