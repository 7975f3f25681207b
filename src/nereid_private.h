#pragma once
/* The one private symbol of the library: a table of functions for the executable and the
 * bindings. Not an interface for others; it may change with every version. */
#include <stdbool.h>

struct nereid_private {
    /* run - the whole server with the command line of argv, until a signal ends it; returns the
     * exit status. The calling thread must be the only one, since signals are blocked here. */
    int (*run)(int argc, char **argv);

    /* crash_line - tell the standard error what a signal that ends the process hit. For its
     * handler. */
    void (*crash_line)(int signal_number);

    /* memory_fault - memory of a client was touched that is gone: zeros are put there. For the
     * handler of SIGBUS, which returns then; false: the address is of no such memory. */
    bool (*memory_fault)(void *address);
};

extern __attribute__((visibility("default"))) const struct nereid_private nereid_private_v1;
