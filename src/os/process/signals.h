#pragma once
/* The signals that end the process. The main thread of a server waits for them, without handlers;
 * a command that runs a loop catches the first one. */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>

/* signals_block - from here on SIGINT, SIGTERM and SIGHUP stay pending until signals_wait takes
 * them; threads that are started later inherit this. SIGPIPE and SIGXFSZ are ignored: the writing
 * fails. */
void signals_block(void);

/* signals_hangup_ends - whether SIGHUP says that a terminal is gone: when signals_block was called
 * this process had one, and did not ignore SIGHUP, as under nohup. Main thread. */
bool signals_hangup_ends(void);

/* signals_wait - wait for the next signal; 0 if `until` comes first (TIME_NEVER = no limit).
 * Main thread. */
int signals_wait(time_ns until);

/* signals_catch - the first SIGINT, SIGTERM, SIGHUP or SIGPIPE is only noted; the next one has its
 * usual effect (a further SIGPIPE none). Those that are ignored stay so. Once in a process.
 * ret_fd  becomes readable with the signal; close-on-exec, stays open to the end of the process */
struct err *signals_catch(int *ret_fd);

/* signals_caught - the signal that was noted; 0 = none.
 * signals_end - end the process by a signal. */
int signals_caught(void);
void signals_end(int number);

/* signals_wake - let signals_wait return SIGTERM. Any thread. */
void signals_wake(void);
