#pragma once
/* What the process of an isolated model says about one request, made into responses, statistics
 * and the release of the request. One thread at a time for an answer, none under a lock. Private
 * to isolate/. */
#include "base/err.h"
#include "infer/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct isolate_session;
struct request;

struct isolate_answer {
    struct isolate_session *session; /* borrowed */
    struct request *request;         /* a reference */
    bool released;                   /* the request was */
    bool answered;                   /* finally */
    bool again;     /* it was given back to the scheduler, which sees to the answer */
    bool gone;      /* nothing more will be said */
    unsigned early; /* responses before the final one */
};

/* isolate_answer_record - one record about the request, which is at the beginning of the body.
 * returns  false: it makes no sense, and nothing was done */
bool isolate_answer_record(struct isolate_answer *a, uint64_t kind, const void *body, size_t len);

/* isolate_answer_drop - a record that nobody waits for any more: the outputs in it go back.
 * false: it makes no sense. */
bool isolate_answer_drop(struct isolate_session *s, uint64_t kind, const void *body, size_t len);

/* isolate_answer_now - answer with an error (taken over) unless it is answered; the request
 * stays unreleased. */
void isolate_answer_now(struct isolate_answer *a, struct err *e);

/* isolate_answer_end - the process is through with it: answer with the error, or with one that
 * says that there was none, unless it is answered; release the request unless it is released.
 * e        taken over; may be NULL returns whether this answered it */
bool isolate_answer_end(struct isolate_answer *a, struct err *e);

/* isolate_answer_count_failure - in the statistics of the model; a request that only fills a gap
 * of a batch does not count. */
void isolate_answer_count_failure(struct isolate_session *s, const struct request *r,
                                  enum stats_reason reason);
