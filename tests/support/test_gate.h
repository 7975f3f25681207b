#pragma once
/* For tests of serve/: a gate at which the executions of a test's backend wait, what became of
 * the requests, and waiting for that. There is one in a program. */
#include "infer/request.h"

#include <stdbool.h>

struct loop;
struct mutex;
struct serve_version;

/* Guarded by test_gate_lock. */
extern unsigned test_gate_entered;  /* what test_gate_pass was told */
extern unsigned test_gate_answered; /* answers so far, */
extern unsigned test_gate_failed;   /* and those that were errors */
extern struct mutex test_gate_lock; /* rank LEAF */

/* test_gate_begin - with zeros. test_gate_end - nobody waits any more. */
void test_gate_begin(bool open);
void test_gate_end(void);

void test_gate_set(bool open);

/* test_gate_pass - count n as entered, and wait for the gate to be open. */
void test_gate_pass(unsigned n);

/* test_gate_wait - until a number that is guarded by the lock is n or more; a minute without any
 * change fails the test.
 * test_gate_add - 1 to such a number. */
void test_gate_wait(const unsigned *what, unsigned n);
void test_gate_add(unsigned *what);

/* test_gate_on_answer - counts an answer and frees it: what a request's `respond` may be. */
void test_gate_on_answer(struct response *r, void *owner);

/* test_gate_request - for a version whose input 'i' takes one INT32; ready to be submitted.
 * home     NULL = no loop's
 * value    lives as long as the request; `owner` of its responses */
struct request *test_gate_request(struct serve_version *v, struct loop *home,
                                  request_respond_fn respond, const int32_t *value);
