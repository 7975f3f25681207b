#pragma once
/* The server as a process. */
/* Fewer files that the process may open are worth a word to the operator. */
#define RUN_FEW_FILES 1024u

struct err;
struct options;

/* run_check_repository - INVALID_ARG if no repository is given. */
struct err *run_check_repository(const struct options *o);

/* run_server - run a server with a command line until a signal ends it; see nereid_private.h. */
int run_server(int argc, char **argv);
