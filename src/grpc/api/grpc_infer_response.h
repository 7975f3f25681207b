#pragma once
/* From a response to the message that goes out. */
#include "base/err.h"
#include "codec/infer_pb.h"
#include "grpc/grpc_out.h"

#include <stdbool.h>

struct budget_account;
struct grpc_infer_classes;
struct response;

/* grpc_infer_response - the ModelInferResponse of a successful response.
 * r        the reply's on success: freed with it
 * classes  outputs that go out as classifications; may be NULL
 * errors   UNSUPPORTED for a parameter of bytes, INTERNAL for a string that is not UTF-8,
 *          INVALID_ARG when it is over 2 GiB, UNAVAILABLE when there is no memory; r stays the
 *          caller's */
struct err *grpc_infer_response(struct response *r, const struct grpc_infer_classes *classes,
                                struct grpc_reply **ret);

/* grpc_infer_response_streamed - the same in a ModelStreamInferResponse, with the parameter
 * triton_final_response.
 * version_text  for a response that is empty or failed: the version as its request named it; may
 *               be NULL */
struct err *grpc_infer_response_streamed(struct response *r,
                                         const struct grpc_infer_classes *classes,
                                         const char *version_text, struct grpc_reply **ret);

/* grpc_infer_response_error - a ModelStreamInferResponse for a request that could not be submitted.
 * e        of its message as much as an answer may carry: infer/request_text.h
 * id       left out when it is longer than ids may be
 * account  holds it until it is sent
 * anyway   also where the account has no room, if it is no more than 4 KiB, or else a word of that
 * returns  NULL when there is no room for it */
struct grpc_reply *grpc_infer_response_error(const struct err *e, struct infer_pb_slice id,
                                             struct budget_account *account, bool anyway);
