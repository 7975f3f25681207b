#pragma once
/* A value that must be fetched, is valid for some time and is used by several threads: a key, a
 * token. One thread fetches the next value before the current one ends. Meanwhile, and if that
 * fails, all threads use the current value as long as it is valid. */
#include "base/err.h"
#include "os/clock.h"
#include "os/mutex.h"

#include <stdbool.h>
#include <stdint.h>

/* How long the result "there is none" is kept. */
#define LEASE_NONE_LIFE TIME_S(30)

struct lease_fresh {
    void *value;  /* owned by the lease from then on; NULL is a value too */
    time_ns life; /* how long it is valid; TIME_NEVER = always */
    bool none;    /* there is nothing to fetch, and the value represents that; life is ignored */
};

struct lease_kind {
    /* Fetches a value: blocks, on a crew's thread. */
    struct err *(*fetch)(void *owner, void *session, struct lease_fresh *ret);
    void *(*copy)(const void *value);
    void (*drop)(void *value);
};

struct lease {
    const struct lease_kind *kind;
    void *owner;
    time_ns (*now)(void);
    struct mutex lock; /* rank LEAF; guards the fields below */
    struct mutex_cond changed;
    bool busy;          /* a thread is fetching */
    uint64_t rounds;    /* number of fetches that ended */
    struct err *failed; /* the error of the last one */
    bool have;
    bool none; /* the current value represents "there is none" */
    void *value;
    time_ns taken;
    time_ns renew; /* from then on another value is fetched first */
    time_ns ends;  /* from then on it is not valid */
};

/* lease_init - make a lease without a value. kind lives as long as the lease. */
void lease_init(struct lease *l, const struct lease_kind *kind, void *owner);
void lease_fini(struct lease *l);

/* lease_get - a valid value. Blocks only if there is none, or if this thread has to fetch the
 * next one.
 * session  of that thread
 * ret      a copy, owned by the caller
 * errors   of the fetch that this thread made or waited for, if no value is valid */
struct err *lease_get(struct lease *l, void *session, void **ret);

/* lease_refused - the value was refused: the next lease_get fetches another one. Returns false
 * if that is useless, because there was none a moment ago. */
bool lease_refused(struct lease *l);

/* lease_is_none - true if the current value represents "there is none". */
bool lease_is_none(struct lease *l);
