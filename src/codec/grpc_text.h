#pragma once
/* The texts in gRPC's headers and trailers. Pure; any thread.
 * source: gRPC over HTTP2, "Requests" and "Responses" */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>

/* The most bytes that a grpc-message of ours takes: clients refuse trailers of more than 8 KiB
 * in all. */
#define GRPC_TEXT_MESSAGE_BYTES ((size_t)4096)

/* The longest time-out that is told apart; clients say 99999999 hours for "none". */
#define GRPC_TEXT_MAX_TIMEOUT TIME_S(3600ull * 24 * 365 * 10)

/* grpc_text_timeout - read a grpc-timeout: one to eight digits and a unit of H, M, S, m, u, n.
 * What is longer than GRPC_TEXT_MAX_TIMEOUT is that.
 * returns  false when it is something else */
bool grpc_text_timeout(const char *text, size_t len, time_ns *ret);

/* grpc_text_encode - percent-encode a message for grpc-message: what is not printable ASCII, and
 * '%'. Cut off where it does not fit, between two characters of UTF-8.
 * to       cap bytes; does not end in NUL
 * returns  bytes written */
size_t grpc_text_encode(const char *message, char *to, size_t cap);

/* grpc_text_is_grpc - a content-type of gRPC with protobuf messages: application/grpc, or that
 * with "+proto", each also with parameters behind a ';'. */
bool grpc_text_is_grpc(const char *content_type, size_t len);
