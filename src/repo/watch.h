#pragma once
/* Looks at the repositories, for the index and for polling. Private to repo/. */
#include "os/clock.h"
#include "repo/repo.h"

struct places_look;

/* watch_look - find out which models lie where, and publish it. Blocks.
 * look        from places_begin
 * places      the places to look at
 * until       how long stores are waited for; a store that takes longer, or cannot be read, is
 *             no error
 * ret_unread  stores that were not read; what was known of them is kept
 * errors      a repository on disk cannot be read; what was known of it is kept */
struct err *watch_look(struct repo *r, const struct places_look *look, uint64_t places,
                       time_ns until, uint64_t *ret_unread);

/* watch_ask - the same on the repository's own thread. */
struct err *watch_ask(struct repo *r, repo_done_fn *done, void *owner);

/* watch_note - remember how a model looks now: polling loads it again when it looks different. */
void watch_note(struct repo *r, const char *space, const char *name);

/* watch_growth - start a look if there are many more models than at the last look. In mode
 * explicit nobody else may do that, and only a look forgets models that were unloaded and then
 * removed. Lock held. */
void watch_growth(struct repo *r);

/* watch_start - begin to poll.
 * watch_stop - wait for the end of the thread, which ends callers that wait for a look with an
 * error as soon as the repository refuses. */
struct err *watch_start(struct repo *r);
void watch_stop(struct repo *r);
