#include "os/process/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool hangup_ends; /* main thread only */

static void ending(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

/* A terminal that hangs up is nobody's any more: later there is none to find. */
static bool hangup_is_of_a_terminal(void)
{
    struct sigaction there;
    int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return false;
    close(terminal);
    return sigaction(SIGHUP, NULL, &there) == 0 && there.sa_handler == SIG_DFL;
}

void signals_block(void)
{
    sigset_t set;
    ending(&set);
    hangup_ends = hangup_is_of_a_terminal();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

bool signals_hangup_ends(void)
{
    return hangup_ends;
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

static const int caught_ones[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
#define CAUGHT_ONES (sizeof(caught_ones) / sizeof(*caught_ones))

static volatile sig_atomic_t caught; /* 0 = none yet */
static int caught_fd;                /* an eventfd */

static void on_caught(int number)
{
    int before = errno;
    uint64_t one = 1;
    caught = number;
    for (size_t i = 0; i < CAUGHT_ONES; i++) {
        struct sigaction there;
        if (sigaction(caught_ones[i], NULL, &there) == 0 && there.sa_handler == on_caught)
            signal(caught_ones[i], caught_ones[i] == SIGPIPE ? SIG_IGN : SIG_DFL);
    }
    if (write(caught_fd, &one, sizeof(one)) < 0) {
        /* An eventfd that was never written to has room. */
    }
    errno = before;
}

struct err *signals_catch(int *ret_fd)
{
    struct sigaction act = {.sa_handler = on_caught, .sa_flags = SA_RESTART}, there;
    *ret_fd = caught_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (caught_fd < 0)
        return err_errno(errno, "waiting for signals");
    for (size_t i = 0; i < CAUGHT_ONES; i++)
        if (sigaction(caught_ones[i], NULL, &there) == 0 && there.sa_handler == SIG_DFL)
            sigaction(caught_ones[i], &act, NULL);
    return NULL;
}

int signals_caught(void)
{
    return caught;
}

void signals_end(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

void signals_wake(void)
{
    kill(getpid(), SIGTERM);
}
