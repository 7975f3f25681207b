#pragma once
/* What a call sends: headers with its first message, messages, trailers; or trailers alone.
 * Nothing is written here: the connection gathers it at the end of the turn. */
#include "base/err.h"
#include "grpc/grpc_stream.h"

/* Status codes of gRPC. Those of an enum status: status_grpc. */
#define GRPC_ANSWER_OK                 0
#define GRPC_ANSWER_CANCELLED          1
#define GRPC_ANSWER_DEADLINE_EXCEEDED  4
#define GRPC_ANSWER_NOT_FOUND          5
#define GRPC_ANSWER_RESOURCE_EXHAUSTED 8
#define GRPC_ANSWER_UNIMPLEMENTED      12
#define GRPC_ANSWER_INTERNAL           13
#define GRPC_ANSWER_UNAVAILABLE        14

/* grpc_answer_send - send a message; r is the stream's from here on. Dropped when the stream is
 * closed or ended. */
void grpc_answer_send(struct grpc_stream *s, struct grpc_reply *r);

/* grpc_answer_lags - whether answers of the stream wait since an earlier turn: its client did
 * not take them at once.
 * grpc_answer_any_lags - whether that is so of all streams of the connection that have answers. */
bool grpc_answer_lags(const struct grpc_stream *s);
bool grpc_answer_any_lags(const struct grpc_conn *c);

/* grpc_answer_packed - a reply that waited has its pieces. */
void grpc_answer_packed(struct grpc_stream *s);

/* grpc_answer_end - send the trailers behind what was sent so far; with a status other than OK,
 * requests under way are cancelled. Once: later calls do nothing.
 * message  NULL = none; copied */
void grpc_answer_end(struct grpc_stream *s, int status, const char *message);

/* grpc_answer_fail - end it with an error, which is taken over. */
void grpc_answer_fail(struct grpc_stream *s, struct err *e);

/* grpc_answer_abandon - the client does not take what waits for it: reset the call, which frees
 * that. */
void grpc_answer_abandon(struct grpc_stream *s);

/* grpc_answer_http - refuse what is no gRPC call with an HTTP status of three digits (static). */
void grpc_answer_http(struct grpc_stream *s, const char *http_status);

/* grpc_answer_encoding - refuse a grpc-encoding: UNIMPLEMENTED, and which ones there are. */
void grpc_answer_encoding(struct grpc_stream *s);

/* grpc_answer_left - bytes of the reply that is going out. s may be NULL. */
uint64_t grpc_answer_left(const struct grpc_stream *s);

/* grpc_answer_gather - put the next n bytes of the reply that is going out into the batch,
 * behind the frame header.
 * returns  false when the batch must be written first */
bool grpc_answer_gather(struct grpc_stream *s, struct grpc_batch *b, const uint8_t *head,
                        size_t head_bytes, size_t n);

/* grpc_answer_sent - the last frame of the answer was gathered. */
void grpc_answer_sent(struct grpc_stream *s);

/* grpc_answer_drop - the stream closes: free what was not sent. */
void grpc_answer_drop(struct grpc_stream *s);
