#pragma once
/* Warnings about common mistakes at the start of a server: one line in the log for each, with
 * what to do. */
struct server;

/* start_advice_repositories - warn if a repository is a model's own directory or has no model,
 * and say how models are loaded where none is at the start.
 * Call it after the models were loaded. Looks at local repositories only. Blocks. */
void start_advice_repositories(const struct server *s);

/* start_advice_budget - warn if the budget of memory is smaller than somebody can mean. */
void start_advice_budget(const struct server *s);
