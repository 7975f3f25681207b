#pragma once
/* The tensors of a request to an ensemble: they stay where they were made, in the request's body
 * or in the response of a step, and are referred to from there, by the steps that read them and
 * by the answer. Private to serve/. */
#include "base/err.h"
#include "infer/tensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ensemble;
struct request;
struct response;

/* Which sequence a response belongs to: its own request's, unless its parameters say otherwise.
 * Strings lie in the request or in the response. */
struct ensemble_sequence {
    uint64_t correlation_id;
    const char *correlation_string; /* NULL = numeric id */
    uint32_t flags;                 /* REQUEST_SEQUENCE_* */
};

/* A response that tensors lie in, until nobody reads them any more. In its arena. */
struct ensemble_source {
    atomic_uint refs; /* the last one frees the response, and acquires what the other readers did */
    struct response *response;
    struct ensemble_sequence sequence;
};

/* A tensor. Immutable; in the arena of the ensemble's request, or of the response. */
struct ensemble_value {
    struct ensemble_source *source; /* NULL = the request's own input */
    enum datatype datatype;
    const int64_t *shape; /* in full */
    uint32_t rank;
    uint32_t batch; /* rows; 0 = made without batching */
    uint64_t byte_size;
    const struct tensor_piece *pieces;
    uint32_t piece_count;
    const struct tensor_policy *policies;
    struct buf *buf; /* what all of it lies in; NULL = something else */
};

/* ensemble_value_input - an input of the ensemble's request, which was prepared. Lives as long
 * as the request. */
struct ensemble_value *ensemble_value_input(struct request *r, const struct tensor_input *in);

/* ensemble_value_source - take over a response without error; one reference, the caller's.
 * own     the sequence of its request
 * ret     written on success
 * errors  INVALID_ARG for a parameter of the sequence that has the wrong type; the response is
 *         the caller's then */
struct err *ensemble_value_source(struct response *r, const struct ensemble_sequence *own,
                                  struct ensemble_source **ret);
void ensemble_value_unref_source(struct ensemble_source *s);

/* ensemble_value_output - one of the response's outputs, with a reference to its source. */
struct ensemble_value *ensemble_value_output(struct ensemble_source *s,
                                             const struct tensor_output *o);

/* ensemble_value_ref - for a reader; a value that is the request's own needs no counting.
 * ensemble_value_unref - takes a void pointer, so that it is an ensemble_flow_drop_fn. */
void ensemble_value_ref(const struct ensemble_value *v);
void ensemble_value_unref(void *value);

/* ensemble_value_shape - the shape for a reader with or without batching: a batch of one is
 * added or taken away where only that makes the dimensions fit.
 * dims, rank  as the reader's configuration has them
 * batching    whether the reader's configuration allows batches
 * ret         v->rank + 1 slots
 * returns     the rank */
uint32_t ensemble_value_shape(const struct ensemble_value *v, const int64_t *dims, uint32_t rank,
                              bool batching, int64_t *ret);

/* ensemble_value_answer - the response of the ensemble, without flags.
 * values   of each tensor of the plan; NULL = there is none
 * errors   those of the memory for the outputs */
struct err *ensemble_value_answer(const struct ensemble *plan, const bool *wanted,
                                  struct request *r, void *const *values, struct response **ret);
