#pragma once
/* Something that has to be fetched, holds for a while and is used by several threads: a key, a
 * token. One of them fetches the next before what there is ends; meanwhile, and when that fails,
 * everybody uses what there is for as long as it holds. */
#include "base/err.h"
#include "os/clock.h"
#include "os/mutex.h"

#include <stdbool.h>
#include <stdint.h>

/* For so long it is believed that there is nothing to be had. */
#define LEASE_NONE_LIFE TIME_S(30)

struct lease_fresh {
    void *value;  /* the lease's from then on; NULL is a value, too */
    time_ns life; /* it holds for so long; TIME_NEVER */
    bool none;    /* the value stands for nothing: there is none to be had. life does not count */
};

struct lease_kind {
    /* Fetches one: blocks, on a crew's thread. */
    struct err *(*fetch)(void *owner, void *session, struct lease_fresh *ret);
    void *(*copy)(const void *value);
    void (*drop)(void *value);
};

struct lease {
    const struct lease_kind *kind;
    void *owner;
    time_ns (*now)(void);
    struct mutex lock; /* rank LEAF; guards what follows */
    struct mutex_cond changed;
    bool busy;          /* somebody fetches */
    uint64_t rounds;    /* fetches that ended */
    struct err *failed; /* of the last one */
    bool have;
    bool none; /* what there is stands for nothing */
    void *value;
    time_ns taken;
    time_ns renew; /* from then on another is fetched first */
    time_ns ends;  /* from then on it is of no use */
};

/* lease_init - without a value. kind lives as long as the lease. */
void lease_init(struct lease *l, const struct lease_kind *kind, void *owner);
void lease_fini(struct lease *l);

/* lease_get - one that holds. Blocks only where there is none, or it is this thread's turn to
 * fetch the next.
 * session  of that thread
 * ret      a copy, the caller's
 * errors   of the fetch that this thread made or waited for, when nothing holds */
struct err *lease_get(struct lease *l, void *session, void **ret);

/* lease_refused - it was not taken: the next get fetches another. false: that would bring
 * nothing else, as it was just found that there is none. */
bool lease_refused(struct lease *l);

/* lease_is_none - whether what there is stands for nothing. */
bool lease_is_none(struct lease *l);
