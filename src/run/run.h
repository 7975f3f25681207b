#pragma once
/* The server as a process. */
#include "server/options/options.h"

/* Fewer files that the process may open are worth a word to the operator. */
#define RUN_FEW_FILES 1024u

/* run_server - run a server with a command line until a signal ends it; see nereid_private.h. */
int run_server(int argc, char **argv);

/* run_check_fronts - what can be said of the front ends before anything is opened.
 * errors  INVALID_ARG with the option */
struct err *run_check_fronts(const struct options *o);
