#pragma once
/* The memory that a model or an instance reports to hold, by kind and device. */
#include "base/buf.h"
#include "base/err.h"
#include "os/mutex.h"

#include <stddef.h>
#include <stdint.h>

/* The most rows of one report: kinds and devices. */
#define USAGE_MAX_ROWS 256u

struct usage_row {
    enum buf_memory memory;
    int64_t device;
    uint64_t bytes;
};

struct usage {
    /* rank LEAF; guards the fields below: reports come while the statistics are read */
    struct mutex lock;
    struct usage_row *rows;
    size_t count;
};

void usage_init(struct usage *u);
void usage_fini(struct usage *u);

/* usage_report - replace the last report.
 * rows    `count` of them, copied
 * errors  INVALID_ARG above the limit, for an unknown kind, or if a kind and device occurs twice */
struct err *usage_report(struct usage *u, const struct usage_row *rows, size_t count);

/* usage_sum - add the report to a list of totals; missing kinds and devices are appended.
 * list, count  NULL and 0 at first; free the list with mem_free. Any thread */
void usage_sum(struct usage *u, struct usage_row **list, size_t *count);
