#include "os/signal_stack.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* What a handler needs, beside what the system puts there. */
static size_t signal_stack_bytes(void)
{
    return (size_t)sysconf(_SC_MINSIGSTKSZ) + (16 << 10);
}

/* Mapped, since memory that is never touched costs nothing then. */
void *signal_stack_begin(void)
{
    stack_t there;
    if (sigaltstack(NULL, &there) != 0 || !(there.ss_flags & SS_DISABLE))
        return NULL;
    void *stack = mmap(NULL, signal_stack_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    stack_t own = {.ss_sp = stack, .ss_size = signal_stack_bytes()};
    sigaltstack(&own, NULL);
    return stack;
}

void signal_stack_end(void *stack)
{
    stack_t there;
    if (!stack)
        return;
    if (sigaltstack(NULL, &there) == 0 && there.ss_sp == stack) {
        stack_t none = {.ss_flags = SS_DISABLE};
        sigaltstack(&none, NULL);
    }
    munmap(stack, signal_stack_bytes());
}
