/* The executable. All code is in the library; only what belongs to the process is done here. */
#include "nereid_private.h"

#include <signal.h>
#include <stddef.h>

/* Reports the crash, then lets the signal have its default effect. */
static void on_crash(int number)
{
    nereid_private_v1.crash_line(number);
    raise(number); /* delivered when this returns; the handler is no longer installed then */
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
