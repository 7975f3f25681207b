#pragma once
/* The server as a process. */

/* run_server - with a command line, until a signal ends it; see nereid_private.h. */
int run_server(int argc, char **argv);
