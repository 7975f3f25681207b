#pragma once
/* Describes the models that are left while the server stops. Private to repo/. */
#include "repo/repo.h"

/* left_busy, left_live - the work of repo_busy and repo_live. Lock not held. */
void left_busy(struct repo *r, struct repo_left *ret);
void left_live(struct repo *r, struct repo_left *ret);

/* left_say_at_work - log which models the loaders work on, and what each model waits for. Lock
 * not held. */
void left_say_at_work(struct repo *r);
