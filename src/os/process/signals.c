#include "os/process/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static bool hangup_waits; /* main thread only */

static void ending(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    if (hangup_waits)
        sigaddset(set, SIGHUP);
}

void signals_block(bool hangup)
{
    sigset_t set;
    hangup_waits = hangup;
    ending(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int signals_wait(time_ns until)
{
    sigset_t set;
    ending(&set);
    for (;;) {
        int number;
        if (until == TIME_NEVER) {
            number = sigwaitinfo(&set, NULL);
        } else {
            time_ns now = clock_now_ns();
            time_ns left = until > now ? until - now : 0;
            struct timespec ts = {.tv_sec = (time_t)(left / 1000000000u),
                                  .tv_nsec = (long)(left % 1000000000u)};
            number = sigtimedwait(&set, NULL, &ts);
        }
        if (number > 0)
            return number;
        if (errno == EAGAIN)
            return 0;
    }
}

void signals_wake(void)
{
    kill(getpid(), SIGTERM);
}
