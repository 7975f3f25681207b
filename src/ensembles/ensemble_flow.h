#pragma once
/* One request on its way through an ensemble: which steps may run now, which values are still
 * needed, and when it is over. Pure: values are pointers that only the caller looks into. One
 * thread at a time.
 *
 * A frame holds what belongs together: the request's own inputs and everything that follows from
 * them, once. A step whose model is decoupled opens a frame for each of its responses, in which
 * everything behind it runs.
 *
 *   put the inputs into the first frame; then, while ensemble_flow_take gives a step: start it
 *   for each response of a step: f = ensemble_flow_answered(...), put its outputs into f,
 *   ensemble_flow_ended if it was the last, take and start what is ready in f, answer when
 *   ensemble_flow_complete says so, ensemble_flow_leave(f) the request is over when
 *   ensemble_flow_over says so */
#include "ensembles/ensemble.h"

#include "base/arena.h"

#include <stddef.h>

struct ensemble_frame {
    uint32_t holds; /* steps started from it that have not ended, and callers */
    uint32_t ready_count;
    uint32_t taken;   /* of ready */
    uint32_t missing; /* wanted outputs that are not there yet */
    bool own;         /* a piece of memory of its own */
    uint32_t *waits;  /* of each step: inputs that are not there yet */
    uint32_t *ready;  /* steps that may start, in order; each once */
    uint32_t *uses;   /* of each tensor: how often its value is still needed */
    void **values;    /* of each tensor; NULL: not there, left out, or needed no more */
    bool *known;      /* of each tensor: it is there, or was left out */
};

/* ensemble_flow_drop_fn - a value is needed no more. */
typedef void ensemble_flow_drop_fn(void *value);

struct ensemble_flow {
    const struct ensemble *plan;
    const bool *wanted;   /* of each output */
    const bool *needed;   /* of each step */
    const uint32_t *uses; /* of each tensor */
    uint32_t wanted_count;
    ensemble_flow_drop_fn *drop;
    struct ensemble_frame *first;
    uint32_t running; /* steps that were started and have not ended */
    bool failed;      /* nothing is started any more */
};

/* ensemble_flow_init - memory is taken from `a`.
 * wanted  of each output; NULL = all; borrowed */
void ensemble_flow_init(struct ensemble_flow *f, const struct ensemble *plan, struct arena *a,
                        const bool *wanted, ensemble_flow_drop_fn *drop);

/* ensemble_flow_fini - no step is under way. Drops the values that are left. */
void ensemble_flow_fini(struct ensemble_flow *f);

/* ensemble_flow_put - a tensor is there. Once for a tensor in a frame; later ones are dropped.
 * value  moves in; NULL: it was left out (an optional input) */
void ensemble_flow_put(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t tensor,
                       void *value);

/* ensemble_flow_take - a step of a frame that is to be started now; its inputs are
 * frame->values, until ensemble_flow_started. false: none (more), or the flow failed */
bool ensemble_flow_take(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t *ret_step);

/* ensemble_flow_started - the inputs of a step that was taken were looked at: those that nobody
 * else needs are dropped. */
void ensemble_flow_started(struct ensemble_flow *f, struct ensemble_frame *frame, uint32_t step);

/* ensemble_flow_answered - where a response of a step goes; held for the caller
 * (ensemble_flow_leave).
 * frame      where the step was taken from
 * decoupled  the step's model is */
struct ensemble_frame *ensemble_flow_answered(struct ensemble_flow *f, struct ensemble_frame *frame,
                                              bool decoupled);
void ensemble_flow_leave(struct ensemble_flow *f, struct ensemble_frame *frame);

/* ensemble_flow_ended - a step had its last response. */
void ensemble_flow_ended(struct ensemble_flow *f, struct ensemble_frame *frame);

/* ensemble_flow_complete - whether all wanted outputs are there; once true, never again for the
 * frame. The values are frame->values, until ensemble_flow_leave. */
bool ensemble_flow_complete(const struct ensemble_flow *f, struct ensemble_frame *frame);

/* ensemble_flow_over - nothing is under way: whatever has not come will not come. */
static inline bool ensemble_flow_over(const struct ensemble_flow *f)
{
    return f->running == 0;
}
