#pragma once
/* The command `nereid bench`: measures a server, ours or another with the same protocols. */

/* bench_command - run the command. argv[0] is the word "bench".
 * returns  the exit status: 0 = measured, 1 = something failed, 2 = the command line is wrong,
 *          3 = measured, but a level did not become stable */
int bench_command(int argc, char **argv);
