#pragma once
/* One model loaded as the server would load it, in a process of its own: what a backend says, or
 * that it crashed or took too long. */
#include "base/err.h"

struct options;

/* The argument that makes `nereid check` the child: "--load-one=MODEL". */
#define CHECK_LOAD_ONE "--load-one"

struct check_load {
    const char *const *arguments; /* of the server: options and repositories; [0] is its name */
    int argument_count;
    unsigned timeout_secs; /* for one model */
};

/* check_load_model - in the parent: load and unload a model in a child. Blocks.
 * arg     a struct check_load
 * errors  what the server would say; that the process ended; that it did not end in time */
struct err *check_load_model(void *arg, const char *model);

/* check_load_here - in the child: load and unload the model, and tell the parent.
 * returns  the exit status */
int check_load_here(const struct options *o, const char *model);
