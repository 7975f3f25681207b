#pragma once
/* From a ModelInferRequest as it was read to a request of the model that it names. Order of the
 * checks and wording of the messages are the reference's. */
#include "base/err.h"
#include "codec/infer_pb.h"
#include "infer/request.h"

struct budget_account;
struct buf;
struct forward;
struct loop;
struct strbuf;
struct table_view;

/* An output that was asked for as a classification. */
struct grpc_infer_classes {
    struct grpc_infer_classes *next;
    const char *output;
    uint64_t classes;
};

struct grpc_infer_options {
    const struct forward *forward;      /* in: headers that become parameters; NULL = none */
    const struct strbuf *headers;       /* in: see forward_add */
    struct budget_account *account;     /* in: holds the request */
    bool one_response;                  /* in: refuse models that may answer any number of times */
    bool decoupled;                     /* out: the model is one of those */
    uint32_t model;                     /* out: see front_metrics_model_id */
    bool empty_final;                   /* out: triton_enable_empty_final_response */
    struct grpc_infer_classes *classes; /* out: in the request's arena */
};

/* grpc_infer_request - make a request and prepare it.
 * view     the worker's
 * pb       lies in a message that is in *buf, or, when *buf is NULL, in received bytes that are
 *          soon gone
 * buf      taken over, and set to NULL, on success when the request's tensors lie in it
 * respond  with owner: as request_new
 * options  what goes out is also set on errors, as far as it is known then
 * ret      the request; request_release it or submit it
 * errors   those of table_find and request_prepare; INVALID_ARG, UNSUPPORTED, UNAVAILABLE */
struct err *grpc_infer_request(struct table_view *view, struct loop *loop,
                               const struct infer_pb_request *pb, struct buf **buf,
                               request_respond_fn respond, void *owner,
                               struct grpc_infer_options *options, struct request **ret);
