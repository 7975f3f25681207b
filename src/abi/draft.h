#pragma once
/* A request as a caller of the C API prepares it: the TRITONSERVER_InferenceRequest. It can be
 * sent many times; each time a struct request is made from it. One thread at a time, except for
 * cancelling it and asking about it. */
#include "base/arena.h"
#include "base/err.h"
#include "infer/param.h"
#include "infer/tensor.h"
#include "os/mutex.h"
#include "triton/core/tritonserver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allocator;
struct request;

/* Buffers in order; the caller owns the bytes. */
struct draft_pieces {
    struct tensor_piece *items;
    uint32_t count;
    uint32_t cap;
};

struct draft_policy {
    char *name;
    struct draft_pieces pieces;
};

struct draft_input {
    char *name;
    enum datatype datatype;
    int64_t *shape;
    uint32_t rank;
    struct draft_pieces pieces;
    struct draft_policy *policies; /* buffers for instances with a certain host policy */
    uint32_t policy_count;
};

struct draft {
    uint32_t magic;
    char *model;
    int64_t version; /* -1 = the latest that the version policy allows */
    char *id;
    uint32_t flags;
    uint64_t correlation_id;
    char *correlation_string; /* NULL = the id is a number */
    uint64_t priority;
    uint64_t timeout_us;
    struct arena param_arena;
    struct param_list params;
    struct draft_input *inputs;
    uint32_t input_count;
    bool raw; /* name, type and shape of the only input come from the configuration */
    char **outputs;
    uint32_t output_count;

    TRITONSERVER_InferenceRequestReleaseFn_t release;
    void *release_userp;
    struct allocator *allocator;
    void *allocator_userp;
    TRITONSERVER_InferenceResponseCompleteFn_t respond;
    void *respond_userp;

    struct mutex lock;    /* rank LEAF; guards the fields below */
    struct request *live; /* a reference, while the server has the request */
    bool sent;            /* it was given to the server at least once */
    bool cancelled;       /* it was cancelled while the server last had it */
};

struct draft *draft_new(const char *model, int64_t version);
void draft_free(struct draft *d);

/* draft_of - the object behind an ABI handle; NULL if the handle is none. */
struct draft *draft_of(const void *handle);

/* draft_busy - true while the server has the request. */
bool draft_busy(struct draft *d);

/* draft_set_text - replace one of its strings; value NULL = no string. */
void draft_set_text(char **text, const char *value);

/* draft_add_input, draft_add_raw_input - add an input.
 * errors  INVALID_ARG for a name that exists, a raw input together with others, or above the
 *         limits */
struct err *draft_add_input(struct draft *d, const char *name, enum datatype datatype,
                            const int64_t *shape, uint64_t rank);
struct err *draft_add_raw_input(struct draft *d, const char *name);

/* draft_remove_input - remove an input. Errors: INVALID_ARG for an unknown name.
 * draft_remove_inputs - remove all inputs. */
struct err *draft_remove_input(struct draft *d, const char *name);
void draft_remove_inputs(struct draft *d);

/* draft_add_data - append a buffer to an input.
 * policy  NULL = for all instances; else for those with this host policy
 * errors  INVALID_ARG for an unknown input; UNSUPPORTED for memory of a GPU that is not there */
struct err *draft_add_data(struct draft *d, const char *name, const struct tensor_piece *piece,
                           const char *policy);

/* draft_remove_data - detach all buffers of an input. */
struct err *draft_remove_data(struct draft *d, const char *name);

/* draft_add_output - request an output. Errors: INVALID_ARG above the limits. An output that is
 * requested twice counts once. */
struct err *draft_add_output(struct draft *d, const char *name);
void draft_remove_output(struct draft *d, const char *name);
void draft_remove_outputs(struct draft *d);

/* draft_fill - copy everything into a new request. The request then depends on the draft only
 * for the bytes of the inputs.
 * errors  INVALID_ARG for a raw input if the configuration does not say where it belongs */
struct err *draft_fill(const struct draft *d, struct request *r);

/* draft_sent - the server gets the request.
 * draft_returned - the request was released, and the draft belongs to the caller again. */
void draft_sent(struct draft *d, struct request *r);
void draft_returned(struct draft *d);

/* draft_cancel, draft_is_cancelled - cancel the request, or ask about it; any thread while the
 * draft exists.
 * ret     a reference (request_unref) to the request that was marked; NULL if the server has
 *         none
 * errors  INTERNAL if it was never sent */
struct err *draft_cancel(struct draft *d, struct request **ret);
struct err *draft_is_cancelled(struct draft *d, bool *ret);
