#pragma once
/* Implicit state of sequences: tensors that the server keeps from one request of a sequence to
 * the next. A model reads a state as an input, and writes the next value through the
 * TRITONBACKEND_State functions.
 *
 *   plan     what states a model has and how they begin; immutable, of the version
 *   value    contents with type and shape; refcounted. Immutable once published, unless the
 *            model shares one buffer
 *   set      the current values of one sequence
 *   r->states of a request: the set it belongs to, the values that it reads, and those being
 *   written
 *
 * A request keeps what it reads until it is released, whatever happens to its sequence
 * meanwhile. Memory of values comes from the pool and is charged to the budget; how a sequence
 * begins is shared by all of them and costs nothing per sequence.
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching.State;
 *         docs/decisions/0070-state-of-sequences.md */
#include "base/err.h"
#include "infer/buffer_attributes.h"
#include "infer/request.h"

#include <stdatomic.h>

struct buf;

struct state_value {
    atomic_uint refs; /* the last unref acquires what every other holder released */
    enum datatype datatype;
    uint32_t rank;
    uint64_t elements;
    uint64_t byte_size;
    struct buf *data; /* owned; NULL until there is a buffer */
    int64_t shape[];  /* with the batch dimension, if the model has one */
};

/* One state of a model. */
struct state_spec {
    const char *input_name;  /* borrowed from the configuration */
    const char *output_name; /* borrowed from the configuration */
    bool in_place;           /* the next value is written over the current one */
    bool is_input; /* the configuration has an input of that name: the state takes its place */
    struct state_value *initial; /* a reference */
};

struct state_plan {
    uint32_t count;
    uint32_t batched; /* 1 when shapes begin with the batch dimension */
    bool variable;    /* the shape of some state may change */
    struct state_spec specs[];
};

struct state_set;
struct request_states;

/* As many as there are handles for: they share the parts of a request's token with its inputs. */
#define STATE_MAX_COUNT 4096u

/* state_plan_new - room for specs, all zero; count is 0. state_plan_free - no set of it is left;
 * drops the initial values. NULL is fine. */
struct state_plan *state_plan_new(uint32_t room);
void state_plan_free(struct state_plan *p);

/* state_memory - for contents; not cleared, and there also for 0 bytes.
 * errors   UNAVAILABLE: the budget is spent, or there is no memory */
struct err *state_memory(const char *name, uint64_t byte_size, struct buf **ret);

/* state_zeros - the same, every byte 0. */
struct err *state_zeros(const char *name, uint64_t byte_size, struct buf **ret);

/* state_value_new - one reference, the caller's.
 * data     taken over, also on error; NULL = none yet. The contents are its first byte_size bytes
 * errors   INVALID_ARG for a shape that cannot be, or a type that does not exist */
struct err *state_value_new(const char *name, enum datatype datatype, const int64_t *shape,
                            uint32_t rank, struct buf *data, uint64_t byte_size,
                            struct state_value **ret);
void state_value_unref(struct state_value *v);

/* state_set_unref - the values of a sequence, counted; NULL is fine. Any thread. */
void state_set_unref(struct state_set *s);

/* state_join - make a prepared request part of a model with states: it gets an input for each of
 * them, not filled yet. Before its controls are added.
 * plan     outlives the request
 * errors   UNAVAILABLE when there is no memory for the states of a sequence that starts;
 *          INVALID_ARG: too many inputs */
struct err *state_join(struct request *r, const struct state_plan *plan);

/* state_join_alone - as that, for a request that is of no sequence (it fills a gap of a batch,
 * or warms the model up): what it writes is dropped. A state for which it has an input is that;
 * the others are as a sequence begins.
 * errors   INVALID_ARG: too many inputs */
struct err *state_join_alone(struct request *r, const struct state_plan *plan);

/* state_enter - the request is about to run: fill its inputs from the values that its sequence
 * has now. A request with START brings the values of its own, and leaves them to the sequence.
 * of_sequence  where the sequence keeps them; guarded by the caller */
void state_enter(struct request *r, struct state_set **of_sequence);

/* state_fits - whether two requests that are about to run have states of the same shapes, apart
 * from the batch dimension.
 * a_kept, b_kept  what their sequences keep now; NULL = nothing yet */
bool state_fits(const struct request *a, struct state_set *a_kept, const struct request *b,
                struct state_set *b_kept);

/* state_release - with the inputs of the request; drops what was written and not published. */
void state_release(struct request *r);

/* -- for backends; at one time one thread for one state of a request -- */

/* state_begin - a new value of a state, without contents; one that was begun before keeps its
 * buffer.
 * ret      the index of the state
 * errors   INVALID_ARG: the model has no states, none of that name, or the shape cannot be */
struct err *state_begin(struct request *r, const char *name, enum datatype datatype,
                        const int64_t *shape, uint32_t rank, uint32_t *ret);

/* state_buffer - memory for the contents of the value that was begun; asked again for the same
 * size, the same memory.
 * ret      the value's, until it is published or another size is asked for
 * errors   UNAVAILABLE: no memory */
struct err *state_buffer(struct request *r, uint32_t index, uint64_t byte_size, void **ret);

/* state_attributes - of the buffer; of 0 bytes before there is one. Borrowed until the request
 * is released. */
struct buffer_attributes *state_attributes(struct request *r, uint32_t index);

/* state_publish - the next request of the sequence sees the value from here on.
 * errors   INVALID_ARG when no buffer was asked for since the last time */
struct err *state_publish(struct request *r, uint32_t index);

/* state_handle - what the C ABI gives out for a state of a request: stale when the request is
 * released. state_from - NULL when it is none, or none any more. */
void *state_handle(const struct request *r, uint32_t index);
struct request *state_from(const void *handle, uint32_t *ret_index);
