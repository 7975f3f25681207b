#pragma once
/* Warnings about common mistakes at the start of a server: one line in the log for each, with
 * what to do. */
struct server;

/* start_advice_repositories - warn if a repository is a model's own directory or has no model.
 * Call it after the models were loaded. Looks at local repositories only. Blocks. */
void start_advice_repositories(const struct server *s);

/* What a directory that was given as a repository looks like. */
enum start_advice_kind {
    START_ADVICE_REPOSITORY,
    /* the directory of one model: it has a configuration, or only version directories */
    START_ADVICE_MODEL,
    START_ADVICE_EMPTY,      /* it has no subdirectory */
    START_ADVICE_UNREADABLE, /* or it does not exist */
};

/* start_advice_look - classify a local directory. Blocks. */
enum start_advice_kind start_advice_look(const char *path);
