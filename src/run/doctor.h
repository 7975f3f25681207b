#pragma once
/* The command `nereid doctor`: it prints what this machine offers to a server with these
 * options, and what the server would refuse. */

/* doctor_command - run the command, without serving. argv[0] is the word "doctor", then follow
 * options of a server.
 * returns  the exit status: 0 = no problem, 1 = problems, 2 = the command line is wrong */
int doctor_command(int argc, char **argv);
