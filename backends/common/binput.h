#pragma once

#include "brun.h"

/* The inputs of a batch. All its requests have the same inputs. */

struct binput_part;

struct binput {
    const char *name; /* the caller sets the first five fields, binput_* functions the others */
    TRITONSERVER_DataType datatype;
    bool ragged;  /* its shapes may differ within a batch; the batch has all elements in a row */
    bool unrowed; /* its shape has no batch dimension, and a batch has it once: binput_bytes */
    struct brun_vector vector; /* how its elements lie; not those of the batch dimension */
    struct binput_part *parts; /* one per item, in the run's scratch */
    const void *in_place;      /* the request's own memory, if binput_data gave that */
    uint64_t in_place_size;
};

/* binput_collect - check the inputs of all items against the model and against each other. Items
 * that do not fit get an error; the others form the batch.
 * inputs   in the model's order
 * errors   for the whole run: no memory */
TRITONSERVER_Error *binput_collect(struct brun *run, struct binput *inputs, size_t count);

/* The part of one item in an input. */
struct binput_share {
    const int64_t *shape;
    size_t rank;
    int64_t elements;
};

/* binput_share - get the shape of an item's part.
 * returns  false for an item that is not in the batch */
bool binput_share(const struct brun *run, const struct binput *input, uint32_t index,
                  struct binput_share *ret_share);

/* binput_shape - the shape of an input of the whole batch, which has at least one item.
 * rows       the number of rows for the model: the batch's, or more
 * ret_shape  room for BRUN_MAX_DIMS
 * returns    the number of dimensions */
size_t binput_shape(const struct brun *run, const struct binput *input, int64_t rows,
                    int64_t *ret_shape);

/* binput_size - the bytes of an input of the whole batch; 0 for strings.
 * rows    as binput_shape
 * errors  INVALID_ARG: each request's shape fits, but not that of all of them (brun_bytes) */
TRITONSERVER_Error *binput_size(const struct brun *run, const struct binput *input, int64_t rows,
                                uint64_t *ret_size);

/* binput_bytes - the contents of an input of one item in one piece: the request's own memory if
 * they are in one piece there, otherwise a copy. For data types without a fixed size.
 * index     of an item in the batch
 * ret_data  valid until the run ends
 * errors    of the item */
TRITONSERVER_Error *binput_bytes(struct brun *run, const struct binput *input, uint32_t index,
                                 const void **ret_data, uint64_t *ret_size);

/* binput_data - the contents of an input of the whole batch in one piece: the request's own
 * memory if there is only one request and its contents are in one piece, otherwise a copy. Items
 * with malformed contents get an error.
 * align     required alignment of the address; at most SCRATCH_ALIGN
 * rows      as binput_shape; rows after the batch are zeros
 * ret_data  valid until the run ends; never NULL
 * errors    for the whole run */
TRITONSERVER_Error *binput_data(struct brun *run, struct binput *input, size_t align, int64_t rows,
                                const void **ret_data);

/* binput_meets - whether memory that an output is to be written to has a byte of what binput_data
 * gave in place. A client may name one piece of shared memory for both: a runtime that writes
 * there while it computes would change its own input. */
bool binput_meets(const struct binput *inputs, size_t count, const void *memory, uint64_t size);

/* binput_copy - copy the contents of an input of the whole batch, one item after the other.
 * Items with malformed contents get an error, and zeros.
 * to    `size` bytes, at least as many as the batch has; bytes after the batch become zeros */
void binput_copy(struct brun *run, const struct binput *input, void *to, uint64_t size);

/* binput_agree - whether an input has one value in all elements of two requests; for models that
 * take one value for a whole batch. */
bool binput_agree(struct brun_place *place, const char *name, TRITONBACKEND_Request *first,
                  TRITONBACKEND_Request *other);

/* binput_value - the value of such an input in a batch whose requests agree on it: one element, a
 * string with its length before it.
 * ret_value  aligned to SCRATCH_ALIGN, valid until the run ends
 * errors     for the whole run, which is one request then: INVALID_ARG naming the input if its rows
 *            have not one element each, or several values */
TRITONSERVER_Error *binput_value(struct brun *run, const struct binput *input,
                                 const void **ret_value, uint64_t *ret_size);

/* binput_gpu_size - the bytes of an input of the whole batch on the place's GPU.
 * rows      as binput_shape
 * ret_data  where they lie already, as binput_data; NULL = they have to be copied */
TRITONSERVER_Error *binput_gpu_size(struct brun *run, const struct binput *input, int64_t rows,
                                    uint64_t *ret_size, const void **ret_data);

/* binput_gpu_copy - as binput_copy, to the place's GPU. The copies are queued: bcuda_wait. */
void binput_gpu_copy(struct brun *run, const struct binput *input, void *to, uint64_t size);
