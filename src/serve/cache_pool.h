#pragma once
/* Threads that wait for response caches, so that neither network threads nor instances do. They start when there is work and end
 * after RUNNER_RETIRE_NS without any. */
#include "base/list.h"

#include <stdbool.h>

/* The most threads: so many calls of a cache at a time. */
#define CACHE_POOL_THREADS 8u

/* A piece of work, embedded in what it is about. */
struct cache_pool_job {
    struct list node;
    void (*run)(struct cache_pool_job
                    *job); /* on a thread of the pool, once; the job may be gone afterwards */
};

struct cache_pool;

struct cache_pool *cache_pool_new(void);

/* cache_pool_put - have a job run. Does not block. Any thread, without locks of rank THREAD or above.
 * returns  false when there is no thread to run it and none could be started: it does not run */
bool cache_pool_put(struct cache_pool *p, struct cache_pool_job *job);

/* cache_pool_free - wait until its threads have ended; no job is left or put. NULL is fine. */
void cache_pool_free(struct cache_pool *p);
