#pragma once
/* Looking at the repositories: for the index, and for the poll. Private to repo/. */
#include "os/clock.h"
#include "repo/repo.h"

struct places_look;

/* watch_look - note which models lie where, and show it. Blocks.
 * look        begun by places_begin
 * places      those to look at
 * until       how long stores are waited for; one that takes longer, or cannot be read, is no error
 * ret_unread  stores that were not read; what is known of them stays
 * errors      a repository on the disk that cannot be read; what is known of it stays */
struct err *watch_look(struct repo *r, const struct places_look *look, uint64_t places,
                       time_ns until, uint64_t *ret_unread);

/* watch_ask - the same on the repository's own thread. */
struct err *watch_ask(struct repo *r, repo_done_fn *done, void *owner);

/* watch_note - remember how a model looks now: the poll loads it again when it looks different. */
void watch_note(struct repo *r, const char *space, const char *name);

/* watch_growth - have it look when models have become many since it looked last: in mode
 * explicit nobody else may, and what was unloaded and then removed is forgotten only by a look.
 * Lock held. */
void watch_growth(struct repo *r);

/* watch_start - begin to poll. watch_stop - end the thread; who waits for a look is refused. */
struct err *watch_start(struct repo *r);
void watch_stop(struct repo *r);
