#pragma once
/* Threads that do jobs in the order in which they come. They start when there is more to do than
 * threads that wait for it, and end after a while without. */
#include "base/list.h"
#include "os/clock.h"

#include <stdbool.h>

struct crew;

#define CREW_MOST_THREADS 16u

/* What a crew is; lives as long as it. */
struct crew_kind {
    const char *name; /* of its threads */
    unsigned most;    /* threads, CREW_MOST_THREADS at most */
    time_ns idle;     /* a thread without work ends after this */
    /* What each thread has of its own, made and freed on it; NULL = nothing. */
    void *(*begin)(void *owner);
    void (*end)(void *owner, void *own);
};

/* A piece of work, embedded in what it is about. */
struct crew_job {
    struct list node;
    void (*run)(struct crew_job *job, void *own); /* once; the job may be gone afterwards */
};

/* crew_new - without a thread yet. owner: for begin and end. */
struct crew *crew_new(const struct crew_kind *kind, void *owner);

/* crew_add - have a job run. Does not block. Any thread, without locks of rank THREAD or above.
 * returns  false when there is no thread to run it and none could be started: it does not run */
bool crew_add(struct crew *c, struct crew_job *job);

/* crew_do - the same, but where there is no thread the job runs before this returns. */
void crew_do(struct crew *c, struct crew_job *job);

/* crew_free - waits until every job has run; only jobs may add further ones by then, with
 * crew_do. NULL is fine. */
void crew_free(struct crew *c);
