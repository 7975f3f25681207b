#pragma once
/* The one private symbol of the library: a table of functions for the executable and the
 * bindings. Not an interface for others; it may change with every version. */
#include <stdbool.h>
#include <stdint.h>

struct TRITONSERVER_Error;
struct TRITONSERVER_Server;
struct hosted; /* a server with its front ends inside another program */

/* What a program adds to the options of its server. NULL members add nothing. */
struct hosted_more {
    const char *repository;   /* beside those that the options name */
    const char *const *names; /* its models, up to NULL: loaded, also where models are by name */
    const char *python;       /* runs models in Python, where the options name no other */
};

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

    /* environment_set, environment_put, environment_unset, environment_clear - what setenv, putenv,
     * unsetenv and clearenv do, for threads that read the variables meanwhile. */
    int (*environment_set)(const char *name, const char *value, int overwrite);
    int (*environment_put)(char *text);
    int (*environment_unset)(const char *name);
    int (*environment_clear)(void);

    /* host_open - start a server with the command line of argv inside a program, which keeps its
     * signals, and load its models. Blocks; see src/run/hosted.h. */
    struct TRITONSERVER_Error *(*host_open)(int argc, char *const *argv,
                                            const struct hosted_more *more, struct hosted **ret);

    /* host_server - the server, for the C API; only host_stop stops it. */
    struct TRITONSERVER_Server *(*host_server)(const struct hosted *h);

    /* host_ports - the ports of HTTP, gRPC and metrics; 0 = not served. */
    void (*host_ports)(const struct hosted *h, uint16_t ret_ports[3]);

    /* host_stop - stop the server. Blocks; after an error it is never freed. */
    struct TRITONSERVER_Error *(*host_stop)(struct hosted *h);

    /* host_free - free a server that has stopped, when no other thread is in a call of it. */
    void (*host_free)(struct hosted *h);
};

extern __attribute__((visibility("default"))) const struct nereid_private nereid_private_v1;
