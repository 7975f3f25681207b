#pragma once
/* The signals that end the process. The main thread waits for them; there are no handlers. */
#include "os/clock.h"

#include <stdbool.h>

/* signals_block - from here on SIGINT and SIGTERM stay pending until signals_wait takes them;
 * threads that are started later inherit this. SIGPIPE is ignored.
 * hangup  SIGHUP is blocked too */
void signals_block(bool hangup);

/* signals_wait - wait for the next signal; 0 if `until` comes first (TIME_NEVER = no limit).
 * Main thread. */
int signals_wait(time_ns until);

/* signals_wake - let signals_wait return SIGTERM. Any thread. */
void signals_wake(void);
