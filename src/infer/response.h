#pragma once
/* One response to a request: outputs or an error, and a flag for the last one.
 *
 * A backend makes it (response_new), adds outputs, fills their buffers and sends it
 * (response_send). The request's respond callback gets it and frees it. Responses can come from
 * any thread, also after the request was released. */
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
    struct mail mail; /* first member: delivers the response on the request's home loop */
    uint32_t magic;
    uint32_t flags;          /* RESPONSE_FINAL */
    bool sent;               /* its reference is counted in the request's sent_refs */
    bool empty;              /* carries only the final flag; the backend sent no response */
    struct request *request; /* a reference */
    struct arena arena;
    struct tensor_output *outputs; /* in order of response_add_output */
    struct tensor_output **last_output;
    uint32_t output_count;
    struct param_list params;
    struct err *error; /* owned; NULL = success */
};

/* The size of the struct and the first memory of its arena. */
#define RESPONSE_OWN_BYTES ((size_t)2048 - SLAB_HEAD)

/* response_new - an empty response; takes a reference on the request. Never NULL. Any thread. */
struct response *response_new(struct request *request);

/* response_free - free outputs and error, and drop the reference on the request. NULL is fine. */
void response_free(struct response *r);

/* The handles of the C ABI for a response and its outputs are tokens (base/token.h).
 * response_handle - for the current owner of the response; the handle changes when the response
 * is sent.
 * response_from   - NULL if the handle is invalid or stale.
 * response_take   - as response_from, and makes the handle stale; for sending or deleting it. */
void *response_handle(const struct response *r);
struct response *response_from(const void *handle);
struct response *response_take(const void *handle);

/* response_output_handle - the handle of the output that was added last.
 * response_output_from - the output behind a handle, and its response. */
void *response_output_handle(const struct response *r);
struct tensor_output *response_output_from(const void *handle, struct response **ret_response);

/* The most outputs of one response; more are not added. */
#define RESPONSE_MAX_OUTPUTS 4096u

/* response_add_output - append an output; name and shape are copied.
 * shape  as the model made it, batch dimension included. If the configuration reshapes the
 *        output, the response shows the configured dims */
struct tensor_output *response_add_output(struct response *r, const char *name,
                                          enum datatype datatype, const int64_t *shape,
                                          uint32_t rank);

/* response_add_shown_output - append an output whose shape is already what the client sees, so
 * it is not reshaped again.
 * shape  `rank` 64-bit numbers, at any alignment; copied, as the name */
struct tensor_output *response_add_shown_output(struct response *r, const char *name,
                                                size_t name_len, enum datatype datatype,
                                                const void *shape, uint32_t rank);

/* response_output_buffer - get byte_size bytes for an output: small ones in the arena, large
 * ones in a pool buffer that is charged to the budget; 64-byte aligned.
 * errors  UNAVAILABLE if the budget is spent or there is no memory */
struct err *response_output_buffer(struct response *r, struct tensor_output *output,
                                   uint64_t byte_size);

/* response_output_buffer_for_backend - the same for a backend, which may write less than it
 * asked for: the buffer is cleared, unless the backend promised to write all of it
 * (target->fills_outputs). */
struct err *response_output_buffer_for_backend(struct response *r, struct tensor_output *output,
                                               uint64_t byte_size);

/* response_output_is_given - whether the server may not choose the memory of an output: a caller
 * of the C API has an allocator, or the client wants the output in memory of its own. */
bool response_output_is_given(const struct response *r, const struct tensor_output *output);

/* response_output_memory - memory for an output, wherever it must lie: also on a GPU. Memory of the
 * client's is not aligned, and its bytes can change at any time.
 * errors  of response_output_buffer and allocator_output; INTERNAL if the client's memory is too
 *         small */
struct err *response_output_memory(struct response *r, struct tensor_output *output,
                                   uint64_t byte_size);

/* response_output_write - copy bytes into the memory of an output from an offset on, wherever both
 * lie. Has ended when it returns.
 * errors  those of gpu_copy, with the output's name and, if it has one, the region's */
struct err *response_output_write(struct tensor_output *output, uint64_t offset,
                                  const struct tensor_piece *from);

/* response_output_memory_for_backend - the same as response_output_buffer_for_backend.
 * memory, device  where the backend would like it; the output tells where it is. Without an
 *                 allocator, only outputs of an ensemble's steps stay on a GPU, and those that the
 *                 client wants on that very one; what the client wants there of a backend that does
 *                 not ask for it is on the host until it is sent */
struct err *response_output_memory_for_backend(struct response *r, struct tensor_output *output,
                                               uint64_t byte_size, enum buf_memory memory,
                                               int64_t device);

/* response_send - hand the response to the request's owner. The caller must not use r
 * afterwards. Outputs that the client wants on a GPU are copied there before; where that fails,
 * the response is an error.
 * flags  RESPONSE_FINAL or 0
 * error  owned by the response; NULL = success
 * returns  false: the request already has its final response, and nothing was sent
 * Between response_batch_begin and response_batch_end on this thread, a final response is kept
 * until the end, or as response_batch_expect says. All others are delivered or posted at once, so
 * the final one comes last, whichever threads send them. */
bool response_send(struct response *r, uint32_t flags, struct err *error);

/* response_deliver - deliver a chain of sent responses (linked by mail.next) now, in order: post
 * them to their home loops, or call the callback. For a request_hold_fn. */
void response_deliver(struct mail *first);

/* response_pass_on - deliver a sent response that nothing holds: add it to this thread's open
 * batch, post it to the home loop, or call the callback. For a request_hold_fn. */
void response_pass_on(struct response *r);

/* response_send_flags - send only flags; the backend made no response. */
bool response_send_flags(struct request *request, uint32_t flags);

/* response_fail - send a final response with only an error, and release the request. For
 * requests that no backend has: rejected, timed out, cancelled, failed by Execute. */
void response_fail(struct request *request, struct err *error);

/* response_batch_begin, response_batch_end - keep the final responses that this thread sends in
 * between (one Execute), then deliver them: directly if their loop is this thread's, as one
 * posted list for each other loop, else by the callback. Batches nest. */
struct response_batch {
    struct mail *first;
    struct mail *last;
    bool all;     /* set after begin: also keep responses of ensembles that send several */
    bool clients; /* set after begin: do not keep responses of steps of ensembles */
    /* set after begin, and then holds for batches within: also post to this thread's loop */
    bool posts;
    struct response_batch *outer;
    size_t expected;    /* kept responses after which all go out; 0 = only the end counts */
    time_ns kept_until; /* what comes from then on goes out at once, with what is kept; TIME_NEVER
                         * before the first one */
    bool apart;         /* something came later than that */
    time_ns executed;   /* set by executes: when the newest Execute began; 0 = there was none */
    /* set after expect: called on this thread before the last one of those goes out; NULL = nothing
     * is to be done then. `now` is the time. */
    void (*before_last)(void *owner, time_ns now);
    void *owner; /* of before_last */
    time_ns now; /* set before the end, a moment ago; 0 = not known */
};

void response_batch_begin(struct response_batch *b);
void response_batch_end(struct response_batch *b);

/* response_batch_now - the time: of the batch whose responses this thread delivers at the moment if
 * it is known, so that what follows from many answers costs no look at the clock for each. */
time_ns response_batch_now(void);

/* response_batch_executes - an Execute begins on this batch. Final responses that this thread sends
 * meanwhile for other requests, which an earlier Execute left unanswered, are not kept.
 * b         this thread's newest open batch
 * requests  those that are executed, `count`
 * now       the time: no other Execute begins at the same nanosecond */
void response_batch_executes(struct response_batch *b, struct request *const *requests,
                             size_t count, time_ns now);

/* response_batch_expect - the same Execute is on a thread that is no loop's, and nobody knows how
 * long it takes. Its final responses for loops do not wait for its end: they go out with the last
 * one, and with one that comes RESPONSE_KEPT_NS after the first that is kept. Callbacks are called
 * at the end, since the steps of ensembles that they submit are gathered there.
 * b      empty; b->apart then tells whether the backend computes one answer after the other
 * count  requests that are executed
 * apart  what b->apart told of the Execute before: the first one goes out at once */
#define RESPONSE_KEPT_NS TIME_US(50)
void response_batch_expect(struct response_batch *b, size_t count, bool apart);
