/* The executable: everything is in the library. What belongs to the process and not to a library
 * is done here. */
#include "nereid_private.h"

#include <signal.h>
#include <stddef.h>

/* Says what crashed, then lets the signal do what it does without a handler. */
static void on_crash(int number)
{
    nereid_private_v1.crash_line(number);
    raise(number); /* waits until this returns; the handler is gone by then */
}

static void watch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    struct sigaction act = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        struct sigaction there;
        if (sigaction(numbers[i], NULL, &there) == 0 && there.sa_handler == SIG_DFL)
            sigaction(numbers[i], &act, NULL);
    }
}

int main(int argc, char **argv)
{
    watch_crashes();
    return nereid_private_v1.run(argc, argv);
}
