#pragma once
/* The child's side of an isolated model: the process that runs the backend. It takes orders from
 * the parent, and ends when the parent ends. */

/* isolate_child_is - true if this process was started to be such a child. */
int isolate_child_is(int argc, char **argv);

/* isolate_child_run - run as the process of an isolated model until the parent ends it or is
 * gone; returns the exit status. The calling thread must be the only one. */
int isolate_child_run(void);

/* isolate_child_crashed - tell the parent at once, before a core file is written. For a signal
 * handler; does nothing in other processes. */
void isolate_child_crashed(void);
