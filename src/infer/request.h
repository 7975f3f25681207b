#pragma once
/* One inference request, from the front end that builds it to the last of its responses.
 *
 * Life: a front end makes it with request_new, fills it, calls request_prepare, and gives it to
 * serve_submit; from then on only the scheduler and the backend touch it. It ends after two
 * events in either order: its final response was delivered, and the backend released it. Inputs
 * (and `body`) live until release; the memory until the last reference.
 *
 * References: request_new gives one, which request_release drops (the release event). Each
 * response, and each response factory, holds one of its own. */
#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "infer/param.h"
#include "infer/tensor.h"
#include "os/clock.h"

#include <stdarg.h>
#include <stdatomic.h>

struct allocator;
struct budget_account;
struct first_response;
struct loop;
struct model_config;
struct request;
struct request_states;
struct response;
struct stats_compute;
struct trace;

/* Values of TRITONSERVER_RequestFlag. */
#define REQUEST_SEQUENCE_START 1u
#define REQUEST_SEQUENCE_END   2u

/* The most inputs, and the most requested outputs, of one request. */
#define REQUEST_MAX_TENSORS 4096u

/* The longest textual correlation id. */
#define REQUEST_MAX_CORRELATION 128u

/* What those know of a request through whose hands it goes. Each has a slot; what it points to lies
 * in the request's arena, or lives longer, and nobody else looks at it. NULL = not concerned. */
enum request_slot {
    REQUEST_SLOT_SEQUENCE, /* sequences/sequencer.c; until the request is released */
    REQUEST_SLOT_ORDER,    /* serve/ordering.c */
    REQUEST_SLOT_CACHE,    /* cache/cache_stage.c */
    REQUEST_SLOTS,
};

/* request_respond_fn - takes a response over (response_free). response_is_final(r) marks the
 * last one. Runs on the loop `home` where the request has one, else on the thread that completes
 * it. Must not block. */
typedef void (*request_respond_fn)(struct response *r, void *owner);

/* request_released_fn - the request object is about to go; for callers of the C API that wait
 * for it. May be NULL. */
typedef void (*request_released_fn)(struct request *r, void *owner);

/* request_hold_fn - keeps a sent response back until it may be delivered (response_deliver);
 * preserve_ordering. */
typedef void (*request_hold_fn)(struct response *r);

/* What a request is for: the head of a model version that is being served (serve/version.h). */
struct request_target {
    const struct model_config *config;
    void (*unpin)(struct request_target *target); /* gives back the pin that the request holds */
    /* The backend gives the request back to have it executed again; NULL = not of this model. */
    void (*again)(struct request *r);
    /* answer it, if it waits in the queue; NULL = it is found there */
    void (*cancelled)(struct request *r);
    void (*ended)(struct request *r); /* the request is about to be released; NULL = nobody asks */
    struct first_response *first_response; /* owned; NULL = not measured */
    /* The backend writes every byte of the buffers that it asks for
     * (nereid_backend_fills_outputs_v1): nobody clears them first. */
    bool fills_outputs;
};

/* What the steps of an ensemble's request spent so far, for its statistics. Relaxed: read when
 * all steps are over. */
struct request_spent {
    _Atomic(uint64_t) input_ns;
    _Atomic(uint64_t) infer_ns;
    _Atomic(uint64_t) output_ns;
};

/* When a request passed what; monotonic ns, 0 = not yet. */
struct request_times {
    time_ns start;       /* the front end had it whole */
    time_ns queue_start; /* given to the scheduler */
};

struct request {
    uint32_t magic;
    uint32_t batch_size; /* rows; 1 for a model without batching; set by request_prepare */
    struct arena arena;
    struct request_target *target;     /* pinned until the request is freed */
    const struct model_config *config; /* target->config */

    const char *id; /* "" when there is none */
    uint32_t flags; /* REQUEST_SEQUENCE_* */
    uint64_t correlation_id;
    const char *correlation_string; /* NULL = numeric id */
    uint64_t priority;              /* 0 = the model's default level */
    uint64_t timeout_us;            /* 0 = none of its own */
    struct param_list params;

    struct tensor_input *inputs; /* input_count of input_cap */
    uint32_t input_count;
    uint32_t input_cap;
    const char **
        /* requested output names; request_prepare fills in all of them when none was named */
        outputs;
    uint32_t output_count;
    uint32_t output_cap;
    /* what the input pieces lie in, if the front end handed it over; dropped at release */
    struct buf *body;

    /* Scheduler's, under the lock of its model. */
    struct list queue_node;
    time_ns queue_deadline; /* absolute; TIME_NEVER = none */
    /* the batcher's: priority level it is queued at, from 1; 0 = not queued */
    uint64_t queue_level;
    uint32_t queue_heap; /* the batcher's: place in its heap of deadlines, from 1; 0 = not in it */
    void *slots[REQUEST_SLOTS];
    struct request_states *states; /* of a model that has some (infer/state.h); NULL = none */
    struct request_times times;

    /* Completion. */
    struct loop *home; /* loop on which responses are delivered; NULL = none */
    request_respond_fn respond;
    request_released_fn released;
    void *owner;
    request_hold_fn hold; /* NULL = responses are delivered as they come */
    /* whose memory outputs go to, for callers of the C API; NULL = ours */
    struct allocator *allocator;
    void *allocator_userp;
    struct trace *trace;    /* owned; NULL = not traced */
    struct request *parent; /* of an ensemble, that this is a step of; a reference; NULL = none */
    struct request_spent *spent;    /* by the steps, of an ensemble's request; NULL = it is none */
    atomic_uint responses_reported; /* relaxed: how many have statistics */
    atomic_uint refs;
    atomic_bool cancelled;  /* set by the front end when nobody waits for the answer any more */
    atomic_bool final_sent; /* relaxed: whoever sets it sends the final response */
    /* relaxed: whoever sets it has the memory that the account holds for one response from the
     * start */
    atomic_bool response_made;
    /* relaxed: the time of the first response was taken, or is not to be */
    atomic_bool first_measured;
    /* inputs lie in memory that a client can still write to: what is computed of them is not
     * kept */
    bool inputs_shared;
    bool gap; /* only fills a row of a batch: nobody waits for it, and it does not count */
    /* Execute was called with it: it ends with a final response whatever the backend does */
    bool with_backend;
    uint32_t factories; /* how many of the references are factories'; theirs (infer/factory.c) */
    /* References of responses that were sent and were not the final one: of all, these are not
     * the backend's any more. Relaxed, see request_unref. */
    atomic_uint sent_refs;
};

/* request_new - an empty request for a version that the caller pinned (table_find); the pin
 * moves into the request.
 * target   &version->target
 * home     loop on which responses shall be delivered; NULL = on the completing thread
 * respond  called once or more, see above; owner is passed through
 * returns  never NULL; one reference, the caller's */
struct request *request_new(struct request_target *target, struct loop *home,
                            request_respond_fn respond, void *owner);

/* request_account - what the request takes is held by its peer's account, and so is each
 * response to it, until they are freed; for the first response from now on, so that a request
 * which there is room for can be answered. Right after request_new; NULL = nobody's. */
void request_account(struct request *r, struct budget_account *account);

/* request_add_input - append an input whose name and shape are copied.
 * pieces  copied array of piece_count; the bytes themselves are borrowed until release
 * returns the input, so that more can be set; NULL when there are REQUEST_MAX_TENSORS already */
struct tensor_input *request_add_input(struct request *r, const char *name, size_t name_len,
                                       enum datatype datatype, const int64_t *shape, uint32_t rank,
                                       const struct tensor_piece *pieces, uint32_t piece_count);

/* request_add_output - ask for an output; name copied. false when there are REQUEST_MAX_TENSORS
 * already. errors of unknown or repeated names are found by request_prepare */
bool request_add_output(struct request *r, const char *name, size_t name_len);

/* request_prepare - check the request against its model's configuration and fill in what is
 * derived: batch_size, shapes as the backend sees them, requested outputs. Messages are the
 * reference's.
 * errors  INVALID_ARG with the prefix "[request id: ...] " */
struct err *request_prepare(struct request *r);

/* What the C ABI gives out for a request, its inputs: a token (base/token.h), so that a
 * backend's mistake is found.
 * request_handle - never NULL; stale once request_take was called on it, and when the request
 * ends.
 * request_from   - NULL when it is none, or none any more. request_take - as that, for the one
 *                who gives the request back. */
void *request_handle(const struct request *r);
struct request *request_from(const void *handle);
struct request *request_take(const void *handle);
void *request_input_handle(const struct tensor_input *in);
struct tensor_input *request_input_from(const void *handle);

/* request_check_reschedule - whether a backend may give the request back to have it executed again.
 * errors  INVALID_ARG when the model is not configured for it, in the reference's words */
struct err *request_check_reschedule(const struct request *r);

/* request_reschedule - the scheduler has the request executed again; inputs stay as they are,
 * responses go on. Any thread, instead of request_release, after request_check_reschedule found
 * nothing. */
void request_reschedule(struct request *r);

/* request_release - the release event: drop inputs and body, and the first reference. Any
 * thread, exactly once. */
void request_release(struct request *r);

struct request *request_ref(struct request *r);

/* request_unref - the last one frees the request and its pin on the version. Where a backend had
 * it and nobody is left who could send the final response, an error is sent first. Any thread. */
void request_unref(struct request *r);

/* request_sent - one of the references goes with a response that is sent and is not the final
 * one; request_sent_unref - and ends. */
void request_sent(struct request *r);
void request_sent_unref(struct request *r);

/* request_has_sent - whether there are such responses still. */
bool request_has_sent(const struct request *r);

/* request_is_cancelled - nobody waits for its answer, or for that of the ensemble whose step it
 * is. Any thread; a hint: what it allows (answering without running) needs no other memory of
 * whoever set it. */
static inline bool request_is_cancelled(const struct request *r)
{
    for (; r; r = r->parent)
        if (atomic_load_explicit(&r->cancelled, memory_order_relaxed))
            return true;
    return false;
}

/* request_is_of_many - it is a step, at whatever depth, of an ensemble that answers several
 * times: what follows from its responses has to keep their order. */
bool request_is_of_many(const struct request *r);

/* request_cancel - nobody waits for its answer any more: whoever executes it, or its steps, may
 * see that; where it waits in its model's queue it is answered with CANCELLED, and so is what
 * cannot go on without it. One with a home loop is not answered from inside this call.
 * r  was submitted or will be; the caller knows that it lives. Any thread, no lock held. */
void request_cancel(struct request *r);

/* request_spend - count what a step spent for the ensemble that it belongs to; r->parent is set.
 * Any thread. */
void request_spend(const struct request *r, const struct stats_compute *c);

/* request_error - an INVALID_ARG error whose message begins with "[request id: X] "
 * ("<id_unknown>" without an id).
 * request_verror - the same of a request that is not made yet. */
__attribute__((warn_unused_result, format(printf, 2, 3), cold)) struct err *
request_error(const struct request *r, const char *fmt, ...);
__attribute__((warn_unused_result, format(printf, 2, 0), cold)) struct err *
request_verror(const char *id, const char *fmt, va_list args);
