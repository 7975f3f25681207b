#pragma once
/* `nereid migrate`: what would become of a tritonserver's command line and models here. */

/* migrate_command - argv[0] is "migrate".
 * returns  the exit status: 0 nothing is refused, 1 something is, 2 wrong command line */
int migrate_command(int argc, char **argv);
