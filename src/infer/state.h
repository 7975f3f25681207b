#pragma once
/* Implicit state of sequences: tensors that the server keeps from one request of a sequence to
 * the next. A model reads a state as an input, and writes the next value through the
 * TRITONBACKEND_State functions.
 *
 *   plan     the states of a model and their initial values; immutable; owned by the version
 *   value    contents with type and shape; counted by references. Immutable once published,
 *            unless the model shares one buffer
 *   set      the current values of one sequence
 *   r->states of a request: its sequence's set, the values that it reads, and those it writes
 *
 * A request keeps the values that it reads until it is released, whatever happens to its
 * sequence. The memory of values comes from the pool and is charged to the budget. All sequences
 * share the initial values, so these cost nothing per sequence.
 *
 * source  spec/model_config_proto.txt, ModelSequenceBatching.State;
 *         docs/decisions/0070-state-of-sequences.md */
#include "base/err.h"
#include "infer/buffer_attributes.h"
#include "infer/request.h"

#include <stdatomic.h>

struct buf;

struct state_value {
    atomic_uint refs; /* the last unref acquires what all other holders released */
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
    bool in_place;           /* the next value overwrites the current one */
    bool is_input; /* the configuration lists an input of this name: the state takes its place */
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

/* The most states, because the handles of states share their number range with those of inputs. */
#define STATE_MAX_COUNT 4096u

/* state_plan_new - room for that many specs, all zero; count is 0.
 * state_plan_free - free the plan and drop the initial values; no set uses it any more. NULL is
 * fine. */
struct state_plan *state_plan_new(uint32_t room);
void state_plan_free(struct state_plan *p);

/* state_memory - memory for contents; not cleared, never NULL on success, even for 0 bytes.
 * errors   UNAVAILABLE: the budget is spent, or there is no memory */
struct err *state_memory(const char *name, uint64_t byte_size, struct buf **ret);

/* state_zeros - the same, with every byte 0. */
struct err *state_zeros(const char *name, uint64_t byte_size, struct buf **ret);

/* state_value_new - make a value; the caller gets one reference.
 * data     owned by the value, freed on error too; NULL = none yet. The contents are its first
 *          byte_size bytes
 * errors   INVALID_ARG for an impossible shape or an unknown type */
struct err *state_value_new(const char *name, enum datatype datatype, const int64_t *shape,
                            uint32_t rank, struct buf *data, uint64_t byte_size,
                            struct state_value **ret);
void state_value_unref(struct state_value *v);

/* state_set_unref - drop a reference to the values of a sequence; NULL is fine. Any thread. */
void state_set_unref(struct state_set *s);

/* state_join - add an input for each state to a prepared request; the inputs are filled later.
 * Call it before the control inputs are added.
 * plan     must outlive the request
 * errors   UNAVAILABLE if there is no memory for the states of a starting sequence; INVALID_ARG:
 *          too many inputs */
struct err *state_join(struct request *r, const struct state_plan *plan);

/* state_join_alone - as state_join, for a request without a sequence (it fills a gap of a batch,
 * or warms the model up). What it writes is dropped. If the request brings an input for a state,
 * that input is used; other states have their initial value.
 * errors   INVALID_ARG: too many inputs */
struct err *state_join_alone(struct request *r, const struct state_plan *plan);

/* state_enter - the request is about to run: fill its inputs with the current values of its
 * sequence. A request with START brings new values, and the sequence keeps them.
 * of_sequence  where the sequence keeps its set; guarded by the caller */
void state_enter(struct request *r, struct state_set **of_sequence);

/* state_fits - true if two requests that are about to run have states of equal shapes, apart
 * from the batch dimension.
 * a_kept, b_kept  the current sets of their sequences; NULL = none yet */
bool state_fits(const struct request *a, struct state_set *a_kept, const struct request *b,
                struct state_set *b_kept);

/* state_release - called when the request's inputs are released; drops values that were written
 * and not published. */
void state_release(struct request *r);

/* -- for backends; only one thread at a time may use one state of a request -- */

/* state_begin - begin a new value of a state, without contents. If a value was begun before, its
 * buffer is kept.
 * ret      the index of the state
 * errors   INVALID_ARG: the model has no states, no state has that name, or the shape is
 *          impossible */
struct err *state_begin(struct request *r, const char *name, enum datatype datatype,
                        const int64_t *shape, uint32_t rank, uint32_t *ret);

/* state_buffer - get memory for the value that was begun. Asking again for the same size returns
 * the same memory.
 * ret      owned by the value; valid until it is published or another size is asked for
 * errors   UNAVAILABLE: no memory */
struct err *state_buffer(struct request *r, uint32_t index, uint64_t byte_size, void **ret);

/* state_attributes - the attributes of the buffer; 0 bytes if there is no buffer yet. Borrowed
 * until the request is released. */
struct buffer_attributes *state_attributes(struct request *r, uint32_t index);

/* state_publish - make the new value current: the next request of the sequence reads it.
 * errors   INVALID_ARG if no buffer was asked for since the last publication */
struct err *state_publish(struct request *r, uint32_t index);

/* state_handle - the ABI handle of a state of a request; stale once the request is released.
 * state_from - the request and state behind a handle; NULL if the handle is invalid or stale. */
void *state_handle(const struct request *r, uint32_t index);
struct request *state_from(const void *handle, uint32_t *ret_index);
