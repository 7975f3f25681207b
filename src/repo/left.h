#pragma once
/* What is left of the models while the server stops. Private to repo/. */
#include "repo/repo.h"

/* left_busy, left_live - as repo_busy and repo_live. Lock not held. */
void left_busy(struct repo *r, struct repo_left *ret);
void left_live(struct repo *r, struct repo_left *ret);

/* left_say_at_work - log which models loaders work on, and what each of them waits for. Lock not
 * held. */
void left_say_at_work(struct repo *r);
