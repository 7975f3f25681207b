#pragma once
/* Load one model in a separate process, as the server would. A crash or a hang of a backend
 * becomes an error of that model, and does not end the check. */
#include "base/err.h"

struct options;

/* The argument that `nereid check` gives its child process: "--load-one=MODEL". */
#define CHECK_LOAD_ONE "--load-one"

struct check_load {
    /* command line of a server: options and repositories; [0] is the program's name */
    const char *const *arguments;
    int argument_count;
    unsigned timeout_secs; /* for one model */
};

/* check_load_model - in the parent: load and unload a model in a child process. Blocks.
 * arg     a struct check_load
 * errors  those of the server; the child crashed; the child took too long */
struct err *check_load_model(void *arg, const char *model);

/* check_load_here - in the child: load and unload the model, and report to the parent.
 * returns  the exit status */
int check_load_here(const struct options *o, const char *model);
