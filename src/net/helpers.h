#pragma once
/* Threads for work that would delay a loop for too long: compressing and decompressing large
 * messages. For its first slices, a job takes turns with other jobs. If it is not finished then,
 * it waits in line and is later done without a break, so at most as many large messages are half
 * done as there are threads. Short and long jobs are served alternately. The threads have the
 * lowest priority, start with the first job and end after some idle seconds. */
#include "base/list.h"
#include "os/mailbox.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct helpers;
struct loop;

/* How many bytes of a job are done on the loop before a helper gets it, and how many a helper
 * does at a time. */
#define HELPERS_INLINE_BYTES ((size_t)32 << 10)
#define HELPERS_SLICE_BYTES  ((size_t)256 << 10)

/* A job that took this many slices is long. */
#define HELPERS_SHORT_SLICES 4u

/* A job, embedded in its owner's data. */
struct helpers_job {
    struct mail mail; /* first */
    struct list node;
    unsigned slices; /* slices that it took */
    struct loop *loop;
    atomic_bool cancelled; /* nobody wants the result any more; orders nothing */
    /* called on a helper: does a slice; true = it was the last */
    bool (*step)(struct helpers_job *j);
    /* called on the loop, once, even if cancelled; frees the job */
    void (*finish)(struct helpers_job *j);
};

/* helpers_new - make the helpers without threads.
 * loops  number of loops that use them; half as many threads run at once, at least one, because
 *        the loops need the other cores */
struct helpers *helpers_new(unsigned loops);

/* helpers_submit - submit a job; step, finish and loop are set. If no thread can be started, the
 * job runs here. */
void helpers_submit(struct helpers *h, struct helpers_job *j);

/* helpers_cancel - finish will come soon. Called on the job's loop. */
void helpers_cancel(struct helpers_job *j);

/* helpers_free - cancel the remaining jobs and wait for the threads. The loops must still run
 * and finish the jobs. NULL is fine. */
void helpers_free(struct helpers *h);
