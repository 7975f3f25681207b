#pragma once
/* How much memory a model or an instance says that it holds, by kind and device. */
#include "base/buf.h"
#include "base/err.h"
#include "os/mutex.h"

#include <stddef.h>
#include <stdint.h>

/* The most kinds and devices of one report. */
#define USAGE_MAX_ROWS 256u

struct usage_row {
    enum buf_memory memory;
    int64_t device;
    uint64_t bytes;
};

struct usage {
    /* rank LEAF; guards what follows: reports come while the statistics are read */
    struct mutex lock;
    struct usage_row *rows;
    size_t count;
};

void usage_init(struct usage *u);
void usage_fini(struct usage *u);

/* usage_report - replaces the last report.
 * rows    count of them, copied
 * errors  INVALID_ARG over the limit, for an unknown kind, or when one kind and device stands
 *         there twice */
struct err *usage_report(struct usage *u, const struct usage_row *rows, size_t count);

/* usage_sum - add a report to a list of totals, which grows by the kinds and devices that it lacks.
 * list, count  mem_free the list; NULL and 0 at first. Any thread */
void usage_sum(struct usage *u, struct usage_row **list, size_t *count);
