#pragma once
/* A tally holds the counters of one version number of a model over all of its loads. If a
 * version is replaced by one with the same number, its metrics continue, and the requests that
 * the old load still finishes count too, as in the reference. When no load with that name and
 * number is left, the tally ends, and a later load starts at 0. The protocol's statistics cover
 * one load only. */
#include "base/list.h"

#include <stdint.h>

struct first_response;
struct stats;
struct tally;

/* The part of one load; embedded. All zeros = it belongs to no tally. */
struct tally_part {
    struct list node;
    struct tally *tally;                   /* a reference */
    struct stats *stats;                   /* borrowed until tally_leave */
    struct first_response *first_response; /* borrowed until tally_leave; may be NULL */
};

struct tally *tally_new(void);
struct tally *tally_ref(struct tally *t);

/* tally_unref - NULL is fine. */
void tally_unref(struct tally *t);

/* tally_join - add a load to the tally. `part` owns the reference t. stats, first_response: as
 * in tally_part. */
void tally_join(struct tally *t, struct tally_part *part, struct stats *stats,
                struct first_response *first_response);

/* tally_leave - the load records no more; its numbers are added to the past. A part that joined
 * no tally is fine. */
void tally_leave(struct tally_part *part);

/* tally_total - the sum of all loads; the caller frees it (stats_free). NULL = this load is the
 * only one. Any thread. */
struct stats *tally_total(const struct tally_part *part);

/* tally_first_response - add the counts of the other loads with the same bounds to a reading of
 * this load. Any thread.
 * counts, sum_ms  as first_response_read returns them */
void tally_first_response(const struct tally_part *part, uint64_t *counts, uint64_t *sum_ms);
