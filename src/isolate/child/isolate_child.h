#pragma once
/* The child's side of an isolated model: the process that really has the backend. It takes
 * orders from the parent, and ends with it. */

/* isolate_child_is - whether the command line of this process asks for it. */
int isolate_child_is(int argc, char **argv);

/* isolate_child_run - be the process of an isolated model until the parent is done with it, or
 * is gone; returns the exit status. The calling thread is the only one. */
int isolate_child_run(void);

/* isolate_child_crashed - let the parent know at once, before a core file is written. For a
 * signal handler; elsewhere than in such a process it does nothing. */
void isolate_child_crashed(void);
