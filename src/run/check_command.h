#pragma once
/* The command `nereid check`. */

/* check_command - argv[0] is the word itself.
 * returns  the exit status: 0 = no problem, 1 = problems, 2 = the command line is wrong */
int check_command(int argc, char **argv);
