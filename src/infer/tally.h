#pragma once
/* The counters of one version of a model under its name, over all of its loads: a metric goes on
 * where a version is replaced by one of the same number, and what the old one still finishes is
 * counted in it, as in the reference. It ends, and begins anew at 0, when nothing of that name
 * and number is left. The statistics of the protocol are those of one load. */
#include "base/list.h"

#include <stdint.h>

struct first_response;
struct stats;
struct tally;

/* What one load has in it; embedded. All zeros belongs to none. */
struct tally_part {
    struct list node;
    struct tally *tally;                   /* a reference */
    struct stats *stats;                   /* borrowed until tally_leave */
    struct first_response *first_response; /* the same; may be NULL */
};

struct tally *tally_new(void);
struct tally *tally_ref(struct tally *t);

/* tally_unref - NULL is fine. */
void tally_unref(struct tally *t);

/* tally_join - from here on its numbers are in the tally. Takes the reference over. stats,
 * first_response: as in tally_part. */
void tally_join(struct tally *t, struct tally_part *part, struct stats *stats,
                struct first_response *first_response);

/* tally_leave - nobody records any more: its numbers stay. One that joined none is fine. */
void tally_leave(struct tally_part *part);

/* tally_total - all loads added up, the caller's (stats_free); NULL = there is no other than
 * this one. Any thread. */
struct stats *tally_total(const struct tally_part *part);

/* tally_first_response - adds what the other loads with the same bounds have to a reading of
 * this one. Any thread.
 * counts, sum_ms  as first_response_read gives them */
void tally_first_response(const struct tally_part *part, uint64_t *counts, uint64_t *sum_ms);
