#pragma once
/* Mistakes that are often made when a server is started: each is said in one line of the log,
 * with what to do. */
struct server;

/* start_advice_repositories - a repository that is a model's own directory, or has no model; and
 * that nothing is served. After the models were loaded. Local repositories only. Blocks. */
void start_advice_repositories(const struct server *s);

/* What a directory that was given as a repository looks like. */
enum start_advice_kind {
    START_ADVICE_REPOSITORY,
    START_ADVICE_MODEL,      /* a model's own: it has a configuration, or nothing but versions */
    START_ADVICE_EMPTY,      /* it has no directory in it */
    START_ADVICE_UNREADABLE, /* or not there */
};

/* start_advice_look - at a local directory. Blocks. */
enum start_advice_kind start_advice_look(const char *path);
