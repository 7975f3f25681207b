/* The executable. All code is in the library; only what belongs to the process is done here. */
#include "nereid_private.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

/* Reports the crash, then lets the signal have its default effect. */
static void on_crash(int number)
{
    nereid_private_v1.crash_line(number);
    raise(number); /* delivered when this returns; the handler is no longer installed then */
}

static struct sigaction before; /* what SIGBUS did, of a sanitizer's */

/* Memory that a client shares may be cut short while it is read: that ends nobody. Else, what the
 * signal did before is done when the instruction is tried again. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    bool touched = info->si_code > 0; /* not sent by somebody */
    if (touched && nereid_private_v1.memory_fault(info->si_addr))
        return;
    if (before.sa_handler == SIG_DFL)
        nereid_private_v1.crash_line(number);
    sigaction(number, &before, NULL);
    if (!touched)
        raise(number);
}

static void watch_memory(void)
{
    struct sigaction act = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGBUS, &act, &before);
}

static void watch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGILL, SIGFPE, SIGABRT};
    struct sigaction act = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        struct sigaction there;
        if (sigaction(numbers[i], NULL, &there) == 0 && there.sa_handler == SIG_DFL)
            sigaction(numbers[i], &act, NULL);
    }
}

/* These stand before the C library's for all code in the process, also that of backends and of
 * their runtimes: src/os/process/environment.h says why. */
__attribute__((visibility("default"))) int setenv(const char *name, const char *value,
                                                  int overwrite)
{
    return nereid_private_v1.environment_set(name, value, overwrite);
}

__attribute__((visibility("default"))) int putenv(char *text)
{
    return nereid_private_v1.environment_put(text);
}

__attribute__((visibility("default"))) int unsetenv(const char *name)
{
    return nereid_private_v1.environment_unset(name);
}

__attribute__((visibility("default"))) int clearenv(void)
{
    return nereid_private_v1.environment_clear();
}

int main(int argc, char **argv)
{
    watch_crashes();
    watch_memory();
    return nereid_private_v1.run(argc, argv);
}
