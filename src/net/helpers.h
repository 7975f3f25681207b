#pragma once
/* Threads that do what would hold a loop for too long: packing and unpacking large messages. A
 * job takes turns with the others for its first slices; if it is not over then it waits in line,
 * and is done from there to its end: so only as many large messages are in memory half done as
 * there are threads. Short and long jobs get turns alternately. The threads run behind
 * everything else on the machine, start with the first job and end after some idle seconds. */
#include "base/list.h"
#include "os/mailbox.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct helpers;
struct loop;

/* How much of a job is done where it arises before a helper gets it, and how much a helper does
 * at a time; in bytes. */
#define HELPERS_INLINE_BYTES ((size_t)32 << 10)
#define HELPERS_SLICE_BYTES  ((size_t)256 << 10)

/* A job that took so many slices is long. */
#define HELPERS_SHORT_SLICES 4u

/* A job; embedded in its owner's data. */
struct helpers_job {
    struct mail mail; /* first */
    struct list node;
    unsigned slices; /* that it took */
    struct loop *loop;
    atomic_bool cancelled;               /* nobody wants it any more; orders nothing */
    bool (*step)(struct helpers_job *j); /* on a helper: a slice of it; true = that was the last */
    /* on the loop, once, whether cancelled or not; frees the job */
    void (*finish)(struct helpers_job *j);
};

/* helpers_new - no thread yet.
 * loops  that it works for; half as many threads, at least one, run at once: the other
 *        processors are the loops' own */
struct helpers *helpers_new(unsigned loops);

/* helpers_submit - hand a job over; step, finish and loop are set. Where no thread can be had it
 * runs here. */
void helpers_submit(struct helpers *h, struct helpers_job *j);

/* helpers_cancel - finish comes soon. On the job's loop. */
void helpers_cancel(struct helpers_job *j);

/* helpers_free - cancel what is left, wait for the threads; the loops still run, and finish what
 * is left. NULL is fine. */
void helpers_free(struct helpers *h);
