#pragma once
/* A group of threads that run jobs in the order in which they were added. A thread is started
 * when a job finds none idle; it ends after some time without jobs. */
#include "base/list.h"
#include "os/clock.h"

#include <stdbool.h>

struct crew;

#define CREW_MOST_THREADS 64u

/* The kind of a crew; must live as long as the crew. */
struct crew_kind {
    const char *name; /* of its threads */
    unsigned most;    /* the most threads, at most CREW_MOST_THREADS */
    time_ns idle;     /* a thread without work ends after this */
    /* A thread's own data, made and freed on the thread; NULL = none. */
    void *(*begin)(void *owner);
    void (*end)(void *owner, void *own);
};

/* A piece of work, embedded in an object of the caller's. */
struct crew_job {
    struct list node;
    void (*run)(struct crew_job *job, void *own); /* called once; it may free the job */
};

/* crew_new - make a crew without threads. owner: passed to begin and end. */
struct crew *crew_new(const struct crew_kind *kind, void *owner);

/* crew_add - queue a job. Does not block. Any thread, without locks of rank THREAD or above.
 * returns  false if there is no thread and none could be started: the job does not run */
bool crew_add(struct crew *c, struct crew_job *job);

/* crew_do - as crew_add, but if no thread can run the job, it runs before this returns. */
void crew_do(struct crew *c, struct crew_job *job);

/* crew_free - wait until every job has run, and free the crew. From here on only jobs may add
 * jobs, with crew_do. NULL is fine. */
void crew_free(struct crew *c);
