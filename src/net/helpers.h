#pragma once
/* Threads that do what would hold a loop for too long: packing and unpacking large messages. They take turns between jobs by
 * slices, run behind everything else on the machine, start with the first job and end after some idle seconds. */
#include "base/list.h"
#include "os/mailbox.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct helpers;
struct loop;

/* How much of a job is done where it arises before a helper gets it, and how much a helper does at a time; in bytes. */
#define HELPERS_INLINE_BYTES ((size_t)32 << 10)
#define HELPERS_SLICE_BYTES  ((size_t)256 << 10)

/* A job; embedded in its owner's data. */
struct helpers_job {
    struct mail mail; /* first */
    struct list node;
    struct loop *loop;
    atomic_bool cancelled;               /* nobody wants it any more; orders nothing */
    bool (*step)(struct helpers_job *j); /* on a helper: a slice of it; true = that was the last */
    void (*finish)(
        struct helpers_job *j); /* on the loop, once, whether cancelled or not; frees the job */
};

/* helpers_new - no thread yet.
 * most  threads at once */
struct helpers *helpers_new(unsigned most);

/* helpers_submit - hand a job over; step, finish and loop are set. Where no thread can be had it runs here. */
void helpers_submit(struct helpers *h, struct helpers_job *j);

/* helpers_cancel - finish comes soon. On the job's loop. */
void helpers_cancel(struct helpers_job *j);

/* helpers_free - cancel what is left, wait for the threads; the loops still run, and finish what is left. NULL is fine. */
void helpers_free(struct helpers *h);
