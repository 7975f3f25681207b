#pragma once
/* Looking at the repositories: for the index, and for the poll. Private to repo/. */
#include "repo/repo.h"

/* watch_look - note which models lie where, and show it. Blocks.
 * errors  a repository that cannot be read; what is known of it stays */
struct err *watch_look(struct repo *r);

/* watch_ask - the same on the repository's own thread. */
struct err *watch_ask(struct repo *r, repo_done_fn *done, void *owner);

/* watch_note - remember how a model looks now: the poll loads it again when it looks different. */
void watch_note(struct repo *r, const char *name);

/* watch_start - begin to poll. watch_stop - end the thread; who waits for a look is refused. */
struct err *watch_start(struct repo *r);
void watch_stop(struct repo *r);
