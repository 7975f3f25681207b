#pragma once
/* What a call sends: headers with its first message, messages, trailers; or only trailers. These
 * functions only prepare it; the connection collects it at the end of the turn. */
#include "base/err.h"
#include "grpc/grpc_stream.h"

/* Status codes of gRPC. status_grpc converts an enum status. */
#define GRPC_ANSWER_OK                 0
#define GRPC_ANSWER_CANCELLED          1
#define GRPC_ANSWER_DEADLINE_EXCEEDED  4
#define GRPC_ANSWER_NOT_FOUND          5
#define GRPC_ANSWER_PERMISSION_DENIED  7
#define GRPC_ANSWER_RESOURCE_EXHAUSTED 8
#define GRPC_ANSWER_UNIMPLEMENTED      12
#define GRPC_ANSWER_INTERNAL           13
#define GRPC_ANSWER_UNAVAILABLE        14
#define GRPC_ANSWER_UNAUTHENTICATED    16

/* grpc_answer_send - send a message; the stream owns r from here on. Dropped if the stream is
 * closed or ended. */
void grpc_answer_send(struct grpc_stream *s, struct h2_reply *r);

/* grpc_answer_lags - true if answers of the stream wait since an earlier turn: the client did
 * not take them at once.
 * grpc_answer_any_lags - true if all streams of the connection that have answers lag. */
bool grpc_answer_lags(const struct grpc_stream *s);
bool grpc_answer_any_lags(const struct grpc_conn *c);

/* grpc_answer_packed - a waiting reply has its pieces now. */
void grpc_answer_packed(struct grpc_stream *s);

/* grpc_answer_end - send the trailers after everything sent so far. With a status other than OK,
 * requests in flight are cancelled. Later calls do nothing. */
void grpc_answer_end(struct grpc_stream *s, int status, const char *message);

/* grpc_answer_fail - end the call with an error, which is freed. */
void grpc_answer_fail(struct grpc_stream *s, struct err *e);

/* grpc_answer_abandon - the client does not send its message, or does not take its answers: reset
 * the call, which frees them.
 * status  of the call, for what is counted
 * code    of the reset, from which the client makes the same status */
void grpc_answer_abandon(struct grpc_stream *s, int status, uint32_t code);

/* grpc_answer_http - refuse a request that is not a gRPC call with a static HTTP status of three
 * digits. */
void grpc_answer_http(struct grpc_stream *s, const char *http_status);

/* grpc_answer_encoding - refuse a grpc-encoding: UNIMPLEMENTED, with the supported ones. */
void grpc_answer_encoding(struct grpc_stream *s);

/* grpc_answer_left - bytes left of the current reply. s may be NULL. */
uint64_t grpc_answer_left(const struct grpc_stream *s);

/* grpc_answer_gather - put the next n bytes of the current reply into the batch, after the frame
 * header.
 * returns  false if the batch must be written first */
bool grpc_answer_gather(struct grpc_stream *s, struct h2_batch *b, const uint8_t *head,
                        size_t head_bytes, size_t n);

/* grpc_answer_sent - the last frame of the answer was put into the batch. */
void grpc_answer_sent(struct grpc_stream *s);

/* grpc_answer_drop - the stream closes: free what was not sent. */
void grpc_answer_drop(struct grpc_stream *s);
