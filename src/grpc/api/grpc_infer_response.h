#pragma once
/* Makes the outgoing message from a response. */
#include "base/err.h"
#include "codec/infer_pb.h"
#include "net/h2/h2_out.h"

#include <stdbool.h>

struct budget_account;
struct grpc_infer_classes;
struct response;

/* grpc_infer_response - make the ModelInferResponse of a successful response.
 * r        owned by the reply on success, and freed with it
 * classes  outputs to send as classifications; may be NULL
 * errors   UNSUPPORTED for a parameter of bytes, INTERNAL for a string that is not UTF-8,
 *          INVALID_ARG if it is over 2 GiB, UNAVAILABLE if there is no memory; the caller then
 *          still owns r */
struct err *grpc_infer_response(struct response *r, const struct grpc_infer_classes *classes,
                                struct h2_reply **ret);

/* grpc_infer_response_streamed - the same in a ModelStreamInferResponse, with the parameter
 * triton_final_response.
 * version_text  for an empty or failed response: the version as its request named it; may be
 *               NULL */
struct err *grpc_infer_response_streamed(struct response *r,
                                         const struct grpc_infer_classes *classes,
                                         const char *version_text, struct h2_reply **ret);

/* grpc_infer_response_error - make a ModelStreamInferResponse for a request that could not be
 * submitted.
 * e        its message is cut to what an answer may carry: infer/request_text.h
 * id       omitted if it is longer than an id may be
 * account  charged until it is sent
 * anyway   send it even if the account has no room, if it is at most 4 KiB; else send a short
 *          text about that
 * returns  NULL if there is no room for it */
struct h2_reply *grpc_infer_response_error(const struct err *e, struct infer_pb_slice id,
                                           struct budget_account *account, bool anyway);
