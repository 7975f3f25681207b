#include "fault.h"

#include "nereid_private.h"

#include <signal.h>
#include <stddef.h>

static struct sigaction before;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    bool touched = info->si_code > 0; /* not sent by somebody */
    if (touched && nereid_private_v1.memory_fault(info->si_addr))
        return;
    /* As it was: the instruction is tried again. */
    sigaction(number, &before, NULL);
    if (!touched)
        raise(number);
}

void fault_watch(void)
{
    struct sigaction now;
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaction(SIGBUS, NULL, &now) != 0 || now.sa_sigaction == on_fault)
        return;
    before = now;
    sigaction(SIGBUS, &act, NULL);
}
