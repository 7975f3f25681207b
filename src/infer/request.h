#pragma once
/* One inference request: from the front end that builds it to its last response.
 *
 * Life: a front end makes it with request_new, fills it, calls request_prepare and submits it
 * (serve/submit.h). From then on only the scheduler and the backend touch it. It ends after two
 * events in either order: its final response was delivered, and the backend released it. Inputs
 * (and `body`) live until the release; the memory lives until the last reference.
 *
 * References: request_new gives the first one, which request_release drops. Each response and
 * each response factory holds one. */
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

/* The longest correlation id that is a string, in bytes. */
#define REQUEST_MAX_CORRELATION 128u

/* Each part of the server that handles a request has a slot for its own data. The data lies in
 * the request's arena or lives longer; only the owner of the slot looks at it. NULL = that part
 * does not handle this request. */
enum request_slot {
    REQUEST_SLOT_SEQUENCE, /* sequences/sequencer.c; until the request is released */
    REQUEST_SLOT_ORDER,    /* serve/ordering.c */
    REQUEST_SLOT_CACHE,    /* cache/cache_stage.c */
    REQUEST_SLOT_REGIONS,  /* regions/regions_lend.c */
    REQUEST_SLOT_ENSEMBLE, /* ensembles/ensemble_run.c; guarded by the version's lock */
    REQUEST_SLOTS,
};

/* request_respond_fn - gets a response and frees it (response_free). response_is_final(r) is
 * true for the last one. Runs on the loop `home` if the request has one, else on the thread that
 * completes the request. Must not block. */
typedef void (*request_respond_fn)(struct response *r, void *owner);

/* request_released_fn - called just before the request object is freed, for callers of the C
 * API. May be NULL. */
typedef void (*request_released_fn)(struct request *r, void *owner);

/* request_hold_fn - holds a sent response until it may be delivered (response_deliver), for
 * preserve_ordering. */
typedef void (*request_hold_fn)(struct response *r);

/* What a request is sent to: the first member of a served model version (serve/version.h). */
struct request_target {
    const struct model_config *config;
    void (*unpin)(struct request_target *target); /* releases the pin that the request holds */
    /* The backend gives the request back to be executed again; NULL = this model does not allow
     * it. */
    void (*again)(struct request *r);
    /* answers the request if it waits in the queue; NULL = the queue finds it by itself */
    void (*cancelled)(struct request *r);
    /* the request is about to be released; NULL = nobody needs to know */
    void (*ended)(struct request *r);
    struct first_response *first_response; /* owned; NULL = not measured */
    /* The backend promised to write every byte of its output buffers
     * (nereid_backend_fills_outputs_v1), so they are not cleared first. */
    bool fills_outputs;
};

/* The time that the steps of an ensemble's request have spent, for its statistics. Relaxed: read
 * after all steps have ended. */
struct request_spent {
    _Atomic(uint64_t) input_ns;
    _Atomic(uint64_t) infer_ns;
    _Atomic(uint64_t) output_ns;
};

/* Where a client wants an output: in memory of its own, which is mapped here, or open on a GPU. */
struct request_place {
    struct request_place *next;
    const char *output;
    const char *region;         /* the client's name of the memory, for errors */
    struct tensor_piece memory; /* not aligned; lives as long as the request */
};

/* Times of a request; monotonic ns, 0 = not reached yet. */
struct request_times {
    time_ns start;       /* the front end had received the whole request */
    time_ns queue_start; /* it was given to the scheduler */
    time_ns executed;    /* it was given to Execute, see response_batch_executes */
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
    uint64_t timeout_us;            /* 0 = the request sets none */
    struct param_list params;

    struct tensor_input *inputs; /* input_count of input_cap */
    uint32_t input_count;
    uint32_t input_cap;
    /* requested output names; if the request names none, request_prepare adds all */
    const char **outputs;
    uint32_t output_count;
    uint32_t output_cap;
    /* memory of the input pieces, if the front end handed it over; dropped at release */
    struct buf *body;

    /* Owned by the scheduler, under the lock of its model. */
    struct list queue_node;
    time_ns queue_deadline; /* absolute; TIME_NEVER = none */
    /* the batcher's: the priority level of its queue, from 1; 0 = not queued */
    uint64_t queue_level;
    /* the batcher's: index in its heap of deadlines, from 1; 0 = not in the heap */
    uint32_t queue_heap;
    void *slots[REQUEST_SLOTS];
    struct request_states *states; /* implicit state (infer/state.h); NULL = the model has none */
    struct request_times times;

    /* Completion. */
    struct loop *home; /* the loop on which responses are delivered; NULL = none */
    request_respond_fn respond;
    request_released_fn released;
    void *owner;
    request_hold_fn hold; /* NULL = responses are delivered at once */
    /* provides memory for outputs, for callers of the C API; NULL = the server does */
    struct allocator *allocator;
    void *allocator_userp;
    /* of outputs that the client wants in memory of its own; usually NULL */
    struct request_place *places;
    struct trace *trace; /* owned; NULL = not traced */
    /* the ensemble's request that this is a step of; a reference; NULL = none */
    struct request *parent;
    /* of an ensemble's request: the time spent by its steps; NULL = not an ensemble */
    struct request_spent *spent;
    atomic_uint responses_reported; /* relaxed: number of responses with statistics */
    atomic_uint refs;
    atomic_bool cancelled;  /* set by the front end when nobody waits for the answer */
    atomic_bool final_sent; /* relaxed: the thread that sets it sends the final response */
    /* relaxed: the response whose maker sets it uses the memory that the account reserved */
    atomic_bool response_made;
    /* relaxed: the account had no room for a response of a bounded request, see request_bound */
    atomic_bool overrun;
    /* relaxed: the time to the first response was recorded, or must not be */
    atomic_bool first_measured;
    /* a client can write to the memory of inputs or outputs at any time, so results are not
     * cached */
    bool memory_shared;
    bool bounded; /* see request_bound */
    bool unnamed; /* the server made up its correlation id; no other request can name it */
    bool gap;     /* only fills a row of a batch: nobody waits for it, and statistics skip it */
    /* Execute was called with it, so the server makes sure that it gets a final response. Of an
     * ensemble: with the request of a step that answered */
    bool with_backend;
    bool lent; /* the backend has it now, to execute it */
    /* how many of the references belong to factories; guarded by infer/factory.c */
    uint32_t factories;
    /* References of responses that were sent but were not the final one. The backend no longer
     * holds these. Relaxed, see request_unref. */
    atomic_uint sent_refs;
};

/* request_new - make an empty request for a version that the caller pinned (table_find). The
 * request owns the pin.
 * target   &version->target
 * home     the loop on which responses are delivered; NULL = on the completing thread
 * respond  called once or more, see above, with `owner`
 * returns  never NULL; the caller has one reference */
struct request *request_new(struct request_target *target, struct loop *home,
                            request_respond_fn respond, void *owner);

/* request_account - charge the request and its responses to its peer's account until they are
 * freed. The account also reserves memory for one response now, so that an accepted request can
 * be answered. Call it right after request_new; NULL = no account. */
void request_account(struct request *r, struct budget_account *account);

/* request_add_input - append an input; its name and shape are copied.
 * pieces  array of piece_count, copied; the bytes are borrowed until release
 * returns the input, so that the caller can set more; NULL if there are REQUEST_MAX_TENSORS
 *         already */
struct tensor_input *request_add_input(struct request *r, const char *name, size_t name_len,
                                       enum datatype datatype, const int64_t *shape, uint32_t rank,
                                       const struct tensor_piece *pieces, uint32_t piece_count);

/* request_add_policy - append the buffers that instances with this host policy read of an input;
 * name and pieces are copied, the bytes are borrowed until release. */
void request_add_policy(struct tensor_input *in, const char *name,
                        const struct tensor_piece *pieces, uint32_t piece_count);

/* request_add_output - ask for an output; its name is copied. Returns false if there are
 * REQUEST_MAX_TENSORS already. request_prepare reports unknown or repeated names. */
bool request_add_output(struct request *r, const char *name, size_t name_len);

/* request_input_bytes - the sum of all inputs. */
uint64_t request_input_bytes(const struct request *r);

/* request_names_sequence - whether it has a correlation id. */
static inline bool request_names_sequence(const struct request *r)
{
    return r->correlation_id || (r->correlation_string && *r->correlation_string);
}

/* request_place_output - put the output of this name into memory of the client's.
 * output, region  borrowed until the request is freed, like the memory
 * request_place_of - where it is to be put; NULL = the client does not say. */
void request_place_output(struct request *r, const char *output, const char *region,
                          const struct tensor_piece *memory);
const struct request_place *request_place_of(const struct request *r, const char *output);

/* request_keep - n bytes that live as long as the request, aligned to 64. Large ones are charged
 * to the budget.
 * errors  UNAVAILABLE */
struct err *request_keep(struct request *r, size_t n, void **ret);

/* request_prepare - check the request against its model's configuration, and set what follows
 * from it: batch_size, the shapes that the backend sees, the requested outputs. Messages are the
 * reference's.
 * errors  INVALID_ARG with the prefix "[request id: ...] " */
struct err *request_prepare(struct request *r);

/* The handles of the C ABI for a request and its inputs are tokens (base/token.h), so that a
 * wrong or stale handle is detected.
 * request_handle - never NULL; stale after request_take, and when the request ends.
 * request_from   - NULL if the handle is invalid or stale.
 * request_take   - as request_from, and makes the handle stale; for giving the request back. */
void *request_handle(const struct request *r);
struct request *request_from(const void *handle);
struct request *request_take(const void *handle);
void *request_input_handle(const struct tensor_input *in);
struct tensor_input *request_input_from(const void *handle);

/* request_check_reschedule - check that the backend may give the request back to be executed
 * again.
 * errors  INVALID_ARG if the model is not configured for it, in the reference's words */
struct err *request_check_reschedule(const struct request *r);

/* request_reschedule - give the request back to the scheduler, which has it executed again.
 * Inputs stay, and more responses may follow. Any thread; used instead of request_release, after
 * request_check_reschedule returned NULL. */
void request_reschedule(struct request *r);

/* request_release - the backend is done: drop inputs and body, and the first reference. Any
 * thread, exactly once. */
void request_release(struct request *r);

struct request *request_ref(struct request *r);

/* request_unref - drop a reference; the last one frees the request and its pin on the version.
 * If a backend had the request and nobody can send its final response any more, an error is sent
 * first. Any thread. */
void request_unref(struct request *r);

/* request_with_backend - note with_backend: written once, since others read it once a response was
 * sent. Called before the backend has the request, or with its answer. */
static inline void request_with_backend(struct request *r)
{
    if (!r->with_backend)
        r->with_backend = true;
}

/* request_sent - count a reference that belongs to a sent response that is not the final one.
 * request_sent_unref - drop such a reference. */
void request_sent(struct request *r);
void request_sent_unref(struct request *r);

/* request_has_sent - true if such references exist. */
bool request_has_sent(const struct request *r);

/* request_bound - a client that can stop reading will get the responses: while its account has no
 * room, responses that are sent before others were taken are dropped, all but the final one, and
 * the request counts as cancelled. So are those of a request that was cancelled: a model that does
 * not look at that must not fill the loop's mail. Before submission; whoever gets the responses
 * asks request_is_overrun with each.
 * request_overruns - whether a response is to be dropped so. Any thread. */
void request_bound(struct request *r);
bool request_overruns(struct request *r);

/* request_lags - whether the peer of a bounded request has so many bytes to take that who makes
 * more of them gives way to others. Any thread. */
bool request_lags(const struct request *r);
bool request_is_overrun(const struct request *r);

/* request_is_cancelled - true if nobody waits for the answer of this request, or of the ensemble
 * whose step it is. Any thread. It is only a hint, so it needs no memory ordering. */
static inline bool request_is_cancelled(const struct request *r)
{
    for (; r; r = r->parent)
        if (atomic_load_explicit(&r->cancelled, memory_order_relaxed))
            return true;
    return false;
}

/* request_is_of_many - true if the request is a step, at any depth, of an ensemble that sends
 * several responses. Its responses must keep their order. */
bool request_is_of_many(const struct request *r);

/* request_cancel - nobody waits for the answer any more. Running code can see that. If the
 * request waits in its queue, it is answered with CANCELLED, and so are the requests that cannot
 * run without it. A request with a home loop is not answered from inside this call.
 * r  was submitted or will be; the caller makes sure that it lives. Any thread, no lock held. */
void request_cancel(struct request *r);

/* request_spend - add the time of a step to the ensemble that it belongs to; r->parent is set.
 * Any thread. */
void request_spend(const struct request *r, const struct stats_compute *c);

/* request_error - an INVALID_ARG error whose message begins with "[request id: X] "
 * ("<id_unknown>" without an id).
 * request_verror - the same for a request that does not exist yet. */
__attribute__((warn_unused_result, format(printf, 2, 3), cold)) struct err *
request_error(const struct request *r, const char *fmt, ...);
__attribute__((warn_unused_result, format(printf, 2, 0), cold)) struct err *
request_verror(const char *id, const char *fmt, va_list args);
