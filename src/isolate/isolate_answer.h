#pragma once
/* Turns what the process of an isolated model says about one request into responses, statistics
 * and the release of the request. One thread at a time may use an answer, and without a lock.
 * Private to isolate/. */
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
    bool released;                   /* the request was released */
    bool answered;                   /* the final response was sent */
    bool again;     /* it was given back to the scheduler, which will have it answered */
    bool gone;      /* the process will say nothing more about it */
    unsigned early; /* responses before the final one */
};

/* isolate_answer_record - handle one record about the request.
 * returns  false: the record is invalid, and nothing was done */
bool isolate_answer_record(struct isolate_answer *a, uint64_t kind, const void *body, size_t len);

/* isolate_answer_drop - drop a record that nobody waits for, and give the outputs in it back.
 * Returns false if the record is invalid. */
bool isolate_answer_drop(struct isolate_session *s, uint64_t kind, const void *body, size_t len);

/* isolate_answer_now - answer with an error (taken over), unless the request is already
 * answered. The request is not released. */
void isolate_answer_now(struct isolate_answer *a, struct err *e);

/* isolate_answer_end - the process has finished with the request. Unless it is answered, answer
 * it with e, or with an error that says that the answer is missing. Unless it is released,
 * release it.
 * e        taken over; may be NULL
 * returns  true if this call answered the request */
bool isolate_answer_end(struct isolate_answer *a, struct err *e);

/* isolate_answer_count_failure - count a failure in the model's statistics. A request that only
 * fills a gap of a batch is not counted. */
void isolate_answer_count_failure(struct isolate_session *s, const struct request *r,
                                  enum stats_reason reason);
