#pragma once
/* A request as a caller of the C API prepares it: the TRITONSERVER_InferenceRequest. It may be
 * sent again and again; each time a struct request is made from it. One thread at a time, but
 * for cancelling and asking about it. */
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

/* Buffers in order; the bytes are the caller's. */
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
    struct draft_policy *policies; /* buffers for instances of one host policy */
    uint32_t policy_count;
};

struct draft {
    uint32_t magic;
    char *model;
    int64_t version; /* -1 = what the policy prefers */
    char *id;
    uint32_t flags;
    uint64_t correlation_id;
    char *correlation_string; /* NULL = numeric */
    uint64_t priority;
    uint64_t timeout_us;
    struct arena param_arena;
    struct param_list params;
    struct draft_input *inputs;
    uint32_t input_count;
    bool raw; /* the only input takes name, type and shape from the configuration */
    char **outputs;
    uint32_t output_count;

    TRITONSERVER_InferenceRequestReleaseFn_t release;
    void *release_userp;
    struct allocator *allocator;
    void *allocator_userp;
    TRITONSERVER_InferenceResponseCompleteFn_t respond;
    void *respond_userp;

    struct mutex lock;    /* rank LEAF; guards what follows */
    struct request *live; /* a reference while the server has the request */
    bool sent;            /* it was given to the server once */
    bool cancelled;       /* while it was there the last time */
};

struct draft *draft_new(const char *model, int64_t version);
void draft_free(struct draft *d);

/* draft_of - the object behind an ABI handle; NULL when it is none. */
struct draft *draft_of(const void *handle);

/* draft_busy - whether the server has the request. */
bool draft_busy(struct draft *d);

/* draft_set_text - replace one of its strings; value NULL = none. */
void draft_set_text(char **text, const char *value);

/* draft_add_input, draft_add_raw_input - errors: INVALID_ARG for a name that is there, a raw
 * input beside others, over the limits */
struct err *draft_add_input(struct draft *d, const char *name, enum datatype datatype,
                            const int64_t *shape, uint64_t rank);
struct err *draft_add_raw_input(struct draft *d, const char *name);

/* draft_remove_input - errors: INVALID_ARG for an unknown name. draft_remove_inputs - all of
 * them. */
struct err *draft_remove_input(struct draft *d, const char *name);
void draft_remove_inputs(struct draft *d);

/* draft_add_data - attach a buffer behind those that the input has.
 * policy  NULL = for all instances; else for those of one host policy
 * errors  INVALID_ARG for an unknown input; UNSUPPORTED for GPU memory */
struct err *draft_add_data(struct draft *d, const char *name, const struct tensor_piece *piece,
                           const char *policy);

/* draft_remove_data - detach all buffers of an input. */
struct err *draft_remove_data(struct draft *d, const char *name);

/* draft_add_output - errors: INVALID_ARG over the limits. An output that is asked for already
 * stays asked for once. */
struct err *draft_add_output(struct draft *d, const char *name);
void draft_remove_output(struct draft *d, const char *name);
void draft_remove_outputs(struct draft *d);

/* draft_fill - write everything into a fresh request, which then is independent of the draft but
 * for the bytes of the inputs.
 * errors  INVALID_ARG for a raw input that the configuration has no single place for */
struct err *draft_fill(const struct draft *d, struct request *r);

/* draft_sent - the server gets the request. draft_returned - it was released: the draft is the
 * caller's again. */
void draft_sent(struct draft *d, struct request *r);
void draft_returned(struct draft *d);

/* draft_cancel, draft_is_cancelled - any thread while the draft exists.
 * ret     a reference (request_unref) on the request that was flagged; NULL when the server has
 *         none
 * errors  INTERNAL before it was sent once */
struct err *draft_cancel(struct draft *d, struct request **ret);
struct err *draft_is_cancelled(struct draft *d, bool *ret);
