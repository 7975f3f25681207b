#pragma once
/* The command `nereid check`. */

/* check_command - run the command. argv[0] is the word "check".
 * returns  the exit status: 0 = no problem, 1 = problems, 2 = the command line is wrong */
int check_command(int argc, char **argv);
