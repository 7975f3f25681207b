#pragma once
/* The variables of the process, for threads that read and set them at the same time, as the
 * runtimes of models do when several are loaded at once.
 *
 * The C library's setenv moves the variables and frees the place where they were, while another
 * thread reads them there (before glibc 2.41): a runtime crashes, or no process can be started.
 * Here, a place where variables were is never freed and an entry changes in one step, so that
 * getenv and exec read at any time. */

/* environment_set, environment_put, environment_unset, environment_clear - what setenv, putenv,
 * unsetenv and clearenv do, with their arguments, results and errno, but that environ is NULL
 * after environment_clear only where there is no memory. From any thread.
 *
 * Memory: a text that was set once stays, as in the C library: putting the same in turns costs
 * nothing more. */
int environment_set(const char *name, const char *value, int overwrite);
int environment_put(char *text);
int environment_unset(const char *name);
int environment_clear(void);
