#pragma once
/* For tests of serve/: a gate at which the executions of a test's backend wait, counters of what
 * happened to the requests, and waiting for them. There is one per program. */
#include "infer/request.h"

#include <stdbool.h>

struct loop;
struct mutex;
struct serve_version;

/* Guarded by test_gate_lock. */
extern unsigned test_gate_entered;  /* the sum of what test_gate_pass was given */
extern unsigned test_gate_answered; /* answers so far */
extern unsigned test_gate_failed;   /* answers with an error */
extern struct mutex test_gate_lock; /* rank LEAF */

/* test_gate_begin - set the counters to zero.
 * test_gate_end - no thread waits any more. */
void test_gate_begin(bool open);
void test_gate_end(void);

void test_gate_set(bool open);

/* test_gate_pass - count n as entered, and wait until the gate is open. */
void test_gate_pass(unsigned n);

/* test_gate_wait - wait until a counter is n or more; a minute without any change fails the
 * test.
 * test_gate_add - add 1 to a counter. */
void test_gate_wait(const unsigned *what, unsigned n);
void test_gate_add(unsigned *what);

/* test_gate_on_answer - count an answer and free it; can be a request's `respond`. */
void test_gate_on_answer(struct response *r, void *owner);

/* test_gate_request - make a request for a version whose input 'i' is one INT32, ready to be
 * submitted.
 * home     NULL = no loop
 * value    lives as long as the request; also the `owner` of its responses */
struct request *test_gate_request(struct serve_version *v, struct loop *home,
                                  request_respond_fn respond, const int32_t *value);
