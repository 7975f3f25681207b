#pragma once
/* Threads that talk to one store, each with its own connections. They start when there is work and end after a while without. */
#include "base/list.h"

struct cloud_abi;
struct crew;

#define CREW_MAX_THREADS 16u

struct crew_job {
    struct list node;
    void (*run)(struct crew_job *job, void *session);
};

/* crew_new - at most `threads` of them. */
struct crew *crew_new(const struct cloud_abi *abi, unsigned threads);

/* crew_add - run a job; in the order in which they come. It belongs to the crew until it runs, then to itself. Any thread. */
void crew_add(struct crew *c, struct crew_job *job);

/* crew_free - waits until every job has run. */
void crew_free(struct crew *c);
