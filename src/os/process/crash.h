#pragma once
/* The last line of a process that crashes. */

/* crash_line - write to the standard error which signal hit which thread, and what the thread
 * worked on. For a signal handler: allocates nothing, takes no lock.
 * version  of the program */
void crash_line(const char *version, int signal_number);
