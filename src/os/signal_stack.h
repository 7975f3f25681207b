#pragma once
/* The stack of a thread on which signals are handled that ask for it (SA_ONSTACK). */

/* signal_stack_begin - give the calling thread a stack for the handler of a signal: who overflows
 * its own stack has no room there. Without one, such a crash has no last line.
 * returns  for signal_stack_end; NULL: the thread has one already, as a sanitizer gives it, or
 *          there is no memory */
void *signal_stack_begin(void);

/* signal_stack_end - give it back, on the same thread. NULL is allowed. */
void signal_stack_end(void *stack);
