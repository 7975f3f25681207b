#pragma once
/* The progress of one request through an ensemble: which steps may run now, which values are
 * still needed, and when the request is over. Pure: values are pointers that only the caller
 * looks into. One thread at a time.
 *
 * A frame holds one set of values: the request's inputs and everything computed from them. A
 * step with a decoupled model opens a new frame for each of its responses, and all following
 * steps run in that frame.
 *
 *   Put the inputs into the first frame. While ensemble_flow_take gives a step, start it.
 *   For each response of a step: f = ensemble_flow_answered(...); put its outputs into f; call
 *   ensemble_flow_ended if it was the last response; take and start the steps that are ready in
 *   f; answer if ensemble_flow_complete; ensemble_flow_leave(f).
 *   The request is over when ensemble_flow_over returns true. */
#include "ensembles/ensemble.h"

#include "base/arena.h"

#include <stddef.h>

struct ensemble_frame {
    uint32_t holds; /* steps started from it that have not ended, plus callers that hold it */
    uint32_t ready_count;
    uint32_t taken;   /* how many of `ready` were taken */
    uint32_t missing; /* wanted outputs that have no value yet */
    bool own;         /* it has its own memory block */
    uint32_t *waits;  /* per step: inputs that have no value yet */
    uint32_t *ready;  /* steps that may start, in order; each step once */
    uint32_t *uses;   /* per tensor: how often its value is still needed */
    void **values;    /* per tensor; NULL: no value yet, left out, or no longer needed */
    bool *known;      /* per tensor: it has a value, or was left out */
};

/* ensemble_flow_drop_fn - called when a value is no longer needed. */
typedef void ensemble_flow_drop_fn(void *value);

struct ensemble_flow {
    const struct ensemble *plan;
    const bool *wanted;   /* per output */
    const bool *needed;   /* per step */
    const uint32_t *uses; /* per tensor */
    uint32_t wanted_count;
    ensemble_flow_drop_fn *drop;
    struct ensemble_frame *first;
    uint32_t running; /* steps that have started and not ended */
    bool failed;      /* no more steps are started */
};

/* ensemble_flow_init - begin a flow; memory is taken from `a`.
 * wanted  per output; NULL = all; borrowed */
void ensemble_flow_init(struct ensemble_flow *f, const struct ensemble *plan, struct arena *a,
                        const bool *wanted, ensemble_flow_drop_fn *drop);

/* ensemble_flow_fini - drop the remaining values; no step is in flight. */
void ensemble_flow_fini(struct ensemble_flow *f);

/* ensemble_flow_put - set the value of a tensor. It is set once per frame; later values are
 * dropped.
 * value  owned by the flow; NULL: the tensor was left out (an optional input) */
void ensemble_flow_put(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t tensor,
                       void *value);

/* ensemble_flow_take - take a step of a frame that may start now. Its inputs are in
 * frame->values until ensemble_flow_started. false: there is none (any more), or the flow has
 * failed. */
bool ensemble_flow_take(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t *ret_step);

/* ensemble_flow_started - the caller has read the inputs of a taken step; values that nobody
 * else needs are dropped. */
void ensemble_flow_started(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t step);

/* ensemble_flow_answered - the frame for a response of a step; held for the caller until
 * ensemble_flow_leave.
 * frame      the frame from which the step was taken
 * decoupled  the step's model is decoupled */
struct ensemble_frame *ensemble_flow_answered(struct ensemble_flow *f, struct ensemble_frame *frame,
                                              bool decoupled);
void ensemble_flow_leave(struct ensemble_flow *f, struct ensemble_frame *frame);

/* ensemble_flow_ended - a step has had its last response. */
void ensemble_flow_ended(struct ensemble_flow *f, struct ensemble_frame *frame);

/* ensemble_flow_complete - true if all wanted outputs have values; it is true only once per
 * frame. The values are in frame->values until ensemble_flow_leave. */
bool ensemble_flow_complete(const struct ensemble_flow *f, struct ensemble_frame *frame);

/* ensemble_flow_over - true if no step is in flight, so no more values can come. */
static inline bool ensemble_flow_over(const struct ensemble_flow *f)
{
    return f->running == 0;
}
