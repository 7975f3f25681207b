#pragma once
/* The tensors of a request to an ensemble. They stay where they were made, in the request's body
 * or in the response of a step. The steps that read them, and the answer, refer to them there.
 * Private to ensembles/. */
#include "base/err.h"
#include "infer/tensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ensemble;
struct request;
struct response;

/* The sequence that a response belongs to: the one of its own request, unless the response's
 * parameters name another one. The string lies in the arena of the request or of the response. */
struct ensemble_sequence {
    uint64_t correlation_id;
    const char *correlation_string; /* NULL = numeric id */
    uint32_t flags;                 /* REQUEST_SEQUENCE_* */
};

/* A response whose tensors are still read by somebody; the struct lies in the response's arena. */
struct ensemble_source {
    /* the last unref frees the response, and acquires what the other readers did */
    atomic_uint refs;
    struct response *response;
    struct ensemble_sequence sequence;
};

/* A tensor. Immutable; it lies in the arena of the ensemble's request, or of the response. */
struct ensemble_value {
    struct ensemble_source *source; /* NULL = the request's own input */
    enum datatype datatype;
    const int64_t *shape; /* with all dimensions */
    uint32_t rank;
    uint32_t batch; /* number of rows; 0 = its model has no batching */
    uint64_t byte_size;
    const struct tensor_piece *pieces;
    uint32_t piece_count;
    const struct tensor_policy *policies;
    struct buf *buf; /* the buffer that holds all of it; NULL = the memory is of another kind */
};

/* ensemble_value_input - the value of an input of the ensemble's prepared request. It lives as
 * long as the request. */
struct ensemble_value *ensemble_value_input(struct request *r, const struct tensor_input *in);

/* ensemble_value_source - make a source of a response without error. The source owns the
 * response; the caller gets one reference.
 * own     the sequence of the response's request
 * ret     written on success
 * errors  INVALID_ARG for a sequence parameter of the wrong type; the caller then still owns the
 *         response */
struct err *ensemble_value_source(struct response *r, const struct ensemble_sequence *own,
                                  struct ensemble_source **ret);
void ensemble_value_unref_source(struct ensemble_source *s);

/* ensemble_value_output - the value of one of the response's outputs, with a reference to its
 * source. */
struct ensemble_value *ensemble_value_output(struct ensemble_source *s,
                                             const struct tensor_output *o);

/* ensemble_value_ref - count a reader; values that are inputs of the request are not counted.
 * ensemble_value_unref - takes a void pointer, because it is an ensemble_flow_drop_fn. */
void ensemble_value_ref(const struct ensemble_value *v);
void ensemble_value_unref(void *value);

/* ensemble_value_shape - the shape for a reader with or without batching: a batch dimension of 1
 * is added or removed if the dimensions fit only then.
 * dims, rank  from the reader's configuration
 * batching    the reader's configuration allows batches
 * ret         room for v->rank + 1 dimensions
 * returns     the rank */
uint32_t ensemble_value_shape(const struct ensemble_value *v, const int64_t *dims, uint32_t rank,
                              bool batching, int64_t *ret);

/* ensemble_value_answer - make the response of the ensemble, without flags.
 * values   per tensor of the plan; NULL = no value
 * errors   those of allocating the outputs */
struct err *ensemble_value_answer(const struct ensemble *plan, const bool *wanted,
                                  struct request *r, void *const *values, struct response **ret);
