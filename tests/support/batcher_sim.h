#pragma once
/* Simulates a model with several instances under a virtual clock. A script of arrivals and
 * cancellations drives a batcher as the serve layer does. After each instant the invariants are
 * checked against the oracle. */
#include "batching/batcher.h"

#define SIM_MAX_EVENTS    120
#define SIM_MAX_INSTANCES 4

enum sim_kind {
    SIM_ARRIVE,
    SIM_FLAG,   /* the client went away: only the flag is set */
    SIM_REMOVE, /* the client went away, and the request is removed from the queue */
    SIM_DRAIN,  /* the model is unloaded */
};

struct sim_event {
    enum sim_kind kind;
    time_ns at; /* ascending in a script */
    int id;     /* of the request that arrives, or is cancelled */
    uint32_t rows;
    uint64_t priority;
    uint64_t timeout_us;
    int64_t dim;        /* of input "a" */
    int content;        /* of input "s" */
    bool with_optional; /* input "o" is given */
    bool swapped;       /* inputs in another order */
    time_ns run_ns;     /* what the request adds to the duration of its batch */
};

struct sim_script {
    uint64_t seed;
    struct batcher_config config;
    int32_t preferred[4];
    struct batcher_level_policy level_policies[4];
    uint32_t strategy_most; /* as of the oracle */
    int instances;
    bool eager; /* the shell asks for dropped requests after every step, not only when told to */
    bool script_first; /* the order of events at the same instant */
    struct sim_event events[SIM_MAX_EVENTS];
    int event_count;
};

/* sim_generate - a random configuration and script. */
void sim_generate(struct sim_script *s, uint64_t seed);

/* sim_run - play the script. Returns "" if every invariant held, else the failure, in static
 * memory. Adds the number of batches that ran to *ret_batches. */
const char *sim_run(const struct sim_script *s, unsigned long *ret_batches);

/* sim_shrink - remove events as long as the script still fails. */
void sim_shrink(struct sim_script *s);

/* sim_print - the configuration and the events, to stderr. */
void sim_print(const struct sim_script *s);
