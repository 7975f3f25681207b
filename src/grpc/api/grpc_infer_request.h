#pragma once
/* Makes a request for a model from a parsed ModelInferRequest. The order of the checks and the
 * messages are the reference's. */
#include "base/err.h"
#include "codec/infer_pb.h"
#include "infer/request.h"

struct budget_account;
struct buf;
struct forward;
struct loop;
struct regions;
struct strbuf;
struct table_view;

/* An output that is requested as a classification. */
struct grpc_infer_classes {
    struct grpc_infer_classes *next;
    const char *output;
    uint64_t classes;
};

struct grpc_infer_options {
    const struct forward *forward;  /* in: forwards headers as parameters; NULL = none */
    const struct strbuf *headers;   /* in: see forward_add */
    struct budget_account *account; /* in: charged for the request */
    struct regions *regions;        /* in: shared memory that tensors may name */
    /* in: refuse models that may send any number of responses */
    bool one_response;
    bool decoupled;                     /* out: the model may send any number of responses */
    uint32_t model;                     /* out: see front_metrics_model_id */
    bool empty_final;                   /* out: triton_enable_empty_final_response */
    struct grpc_infer_classes *classes; /* out: in the request's arena */
};

/* grpc_infer_request - make a request and prepare it.
 * view     the worker's
 * pb       parsed from a message in *buf or, if *buf is NULL, in received bytes that are soon
 *          overwritten
 * buf      taken over on success, and set to NULL, if the request's tensors lie in it
 * respond  with owner: as request_new
 * options  the `out` fields are also set on errors, as far as they are known
 * ret      the request; request_release it or submit it
 * errors   those of table_find and request_prepare; INVALID_ARG, UNSUPPORTED, UNAVAILABLE */
struct err *grpc_infer_request(struct table_view *view, struct loop *loop,
                               const struct infer_pb_request *pb, struct buf **buf,
                               request_respond_fn respond, void *owner,
                               struct grpc_infer_options *options, struct request **ret);
