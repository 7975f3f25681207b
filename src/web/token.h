#pragma once
/* A bearer token that several threads use and that ends: fetched when it is needed, by one of them. */
#include "base/err.h"
#include "os/mutex.h"

#include <stdbool.h>
#include <stdint.h>

struct token {
    /* Fetches one: blocks, on a crew's thread.
     * ret_text  the caller's (mem_free); NULL = requests go without
     * ret_secs  how long it lives; 0 = for ever */
    struct err *(*fetch)(void *owner, void *session, char **ret_text, uint64_t *ret_secs);
    void *owner;
    struct mutex lock; /* rank LEAF; guards what follows */
    struct mutex_cond changed;
    bool busy;
    uint64_t rounds;    /* fetches that ended */
    struct err *failed; /* of the last one */
    bool have;
    char *text;
    time_ns ends; /* TIME_NEVER = never */
};

void token_init(struct token *t, struct err *(*fetch)(void *, void *, char **, uint64_t *),
                void *owner);
void token_fini(struct token *t);

/* token_get - one that is good for some minutes. ret: a copy, the caller's (mem_free); NULL = requests go without. */
struct err *token_get(struct token *t, void *session, char **ret);

/* token_refused - it was not taken: the next get fetches another. false: there is none to fetch. */
bool token_refused(struct token *t);

/* token_read - the answer of an OAuth endpoint: access_token and expires_in.
 * errors  UNAVAILABLE: it has none */
struct err *token_read(const char *json, char **ret_text, uint64_t *ret_secs);
