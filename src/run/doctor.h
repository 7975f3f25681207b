#pragma once
/* The command `nereid doctor`: what this machine has for a server with these options, and what
 * would be refused. */

/* doctor_command - argv[0] is the word itself; then the options of a server. Nothing is served.
 * returns  the exit status: 0 = no problem, 1 = problems, 2 = the command line is wrong */
int doctor_command(int argc, char **argv);
