#pragma once
/* A simple, slow model of the batcher: every question sorts and walks all waiting requests. It
 * shares nothing with src/batching except the configuration struct. */
#include "batching/batcher.h"

#define ORACLE_MAX 160

enum oracle_place {
    ORACLE_NOWHERE = 0, /* not pushed, or refused */
    ORACLE_QUEUED,
    ORACLE_TIMED_OUT, /* to be answered with an error */
    ORACLE_TAKEN,     /* taken by an instance, removed, or found cancelled */
};

struct oracle_request {
    enum oracle_place place;
    uint32_t rows;
    uint64_t level; /* resolved, from 1 */
    uint64_t arrival;
    time_ns pushed;
    time_ns deadline;
    bool late;
    uint64_t late_order;
    bool flagged;      /* cancelled, but maybe still in the queue */
    uint64_t likeness; /* requests may share a batch if this is equal */
};

struct oracle {
    const struct batcher_config *config;
    /* the most rows plus requests that the strategy allows in a batch; 0 = no strategy */
    uint32_t strategy_most;
    struct oracle_request requests[ORACLE_MAX]; /* by id */
    uint64_t arrivals;
    uint64_t lates;
};

void oracle_init(struct oracle *o, const struct batcher_config *config);

/* oracle_push - true if the request is accepted. priority, timeout_us: as in the request. */
bool oracle_push(struct oracle *o, time_ns now, int id, uint32_t rows, uint64_t priority,
                 uint64_t timeout_us, uint64_t likeness);

/* oracle_advance - apply the policies to requests past their deadline at `now`. */
void oracle_advance(struct oracle *o, time_ns now);

/* oracle_choose - the ids of the batch that must run at `now`, in order; 0 = wait until
 * *ret_wake. */
int oracle_choose(const struct oracle *o, time_ns now, int *ids, time_ns *ret_wake);

/* oracle_next_deadline - the next deadline of requests in time, flagged or not. */
time_ns oracle_next_deadline(const struct oracle *o);
