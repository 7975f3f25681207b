#pragma once
/* One response to a request: outputs or an error, and whether it is the last.
 *
 * A backend makes it (response_new), adds outputs, fills their buffers, and sends it
 * (response_send); the front end gets it through the request's respond callback and frees it.
 * Responses come from any thread, also after the request was released. */
#include "base/arena.h"
#include "base/err.h"
#include "base/slab.h"
#include "infer/param.h"
#include "infer/tensor.h"
#include "os/clock.h"
#include "os/mailbox.h"

#include <stdbool.h>

struct request;

/* Values of TRITONSERVER_ResponseCompleteFlag. */
#define RESPONSE_FINAL 1u

struct response {
    struct mail mail; /* first: delivery on the request's home loop */
    uint32_t magic;
    uint32_t flags;          /* RESPONSE_FINAL */
    bool sent;               /* its reference is one of the request's sent_refs */
    bool empty;              /* only carries the final flag: the backend sent none of its own */
    struct request *request; /* a reference */
    struct arena arena;
    struct tensor_output *outputs; /* in order of response_add_output */
    struct tensor_output **last_output;
    uint32_t output_count;
    struct param_list params;
    struct err *error; /* owned; NULL = success */
};

/* The struct and the first memory of its arena. */
#define RESPONSE_OWN_BYTES ((size_t)2048 - SLAB_HEAD)

/* response_new - an empty response; takes a reference on the request. Never NULL. Any thread. */
struct response *response_new(struct request *request);

/* response_free - outputs, error and the reference on the request. NULL is fine. */
void response_free(struct response *r);

/* What the C ABI gives out for a response and its outputs: a token (base/token.h).
 * response_handle - for whoever has the response now: a new one after it was sent.
 * response_from   - NULL when it is none, or none any more. response_take - as that, for the one
 *                 who sends or deletes it. */
void *response_handle(const struct response *r);
struct response *response_from(const void *handle);
struct response *response_take(const void *handle);

/* response_output_handle - of the output that was added last. response_output_from - and its
 * response. */
void *response_output_handle(const struct response *r);
struct tensor_output *response_output_from(const void *handle, struct response **ret_response);

/* The most outputs of one response; more are not added. */
#define RESPONSE_MAX_OUTPUTS 4096u

/* response_add_output - name and shape are copied.
 * shape  as the model made it, batch dimension included; where the configuration reshapes the
 *        output, the response shows its dims */
struct tensor_output *response_add_output(struct response *r, const char *name,
                                          enum datatype datatype, const int64_t *shape,
                                          uint32_t rank);

/* response_add_shown_output - the same for an output as a client saw it before: its shape is not
 * reshaped again.
 * shape  rank numbers of 64 bits, at any address; copied, as name */
struct tensor_output *response_add_shown_output(struct response *r, const char *name,
                                                size_t name_len, enum datatype datatype,
                                                const void *shape, uint32_t rank);

/* response_output_buffer - memory of byte_size bytes for an output: small ones in the arena,
 * large ones in a warm buffer that the budget is charged for; 64-byte aligned.
 * errors  UNAVAILABLE when the budget is spent or there is no memory */
struct err *response_output_buffer(struct response *r, struct tensor_output *output,
                                   uint64_t byte_size);

/* response_output_buffer_for_backend - the same for a backend, which may write less of it than
 * it asked for: what is left is 0, unless the backend promised to write all
 * (target->fills_outputs). */
struct err *response_output_buffer_for_backend(struct response *r, struct tensor_output *output,
                                               uint64_t byte_size);

/* response_send - hand the response to the request's owner; r is the callee's from here on.
 * flags  RESPONSE_FINAL or 0
 * error  taken over; NULL = success
 * returns  false: the request has its final response already; nothing was sent
 * Inside response_batch_begin/end on this thread the final one is kept back until the end; all
 * others are delivered, or posted, at once: so the final one comes last, whichever threads send
 * them. */
bool response_send(struct response *r, uint32_t flags, struct err *error);

/* response_deliver - deliver a chain of sent responses (linked by mail.next) now, in order:
 * posted to their home loops, or by the callback. For a request_hold_fn. */
void response_deliver(struct mail *first);

/* response_pass_on - what response_send does with a response that nothing holds: it goes into
 * the open batch of this thread, or to the request's home loop, or to the callback. For a
 * request_hold_fn. */
void response_pass_on(struct response *r);

/* response_send_flags - send flags without a response of the backend's. */
bool response_send_flags(struct request *request, uint32_t flags);

/* response_fail - make and send a final response that only carries an error, and release the
 * request. For requests that no backend has: rejected, timed out, cancelled, failed by Execute. */
void response_fail(struct request *request, struct err *error);

/* response_batch_begin, response_batch_end - keep back final responses that this thread sends in
 * between (one Execute), then deliver them: for the loop that runs on this very thread directly,
 * for other loops as one posted list each, else by the callback. Nests. */
struct response_batch {
    struct mail *first;
    struct mail *last;
    bool all; /* set after begin: also those of steps of ensembles that answer several times */
    struct response_batch *outer;
};

void response_batch_begin(struct response_batch *b);
void response_batch_end(struct response_batch *b);
