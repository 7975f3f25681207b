#pragma once
/* Texts in gRPC's headers and trailers. Pure; any thread.
 * source: gRPC over HTTP2, "Requests" and "Responses" */
#include "codec/coding.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>

/* The most bytes of a grpc-message: clients refuse trailers of more than 8 KiB in all. */
#define GRPC_TEXT_MESSAGE_BYTES ((size_t)4096)

/* The longest timeout; clients send 99999999 hours for "none". */
#define GRPC_TEXT_MAX_TIMEOUT TIME_S(3600ull * 24 * 365 * 10)

/* grpc_text_timeout - parse a grpc-timeout: one to eight digits and a unit of H, M, S, m, u, n.
 * A longer one than GRPC_TEXT_MAX_TIMEOUT becomes that.
 * returns  false if it has another form */
bool grpc_text_timeout(const char *text, size_t len, time_ns *ret);

/* grpc_text_encode - percent-encode a message for grpc-message: '%' and everything that is not
 * printable ASCII, and a space at either end, where HTTP/2 allows none. A message that does not fit
 * is cut between two UTF-8 characters.
 * to       cap bytes; does not end in NUL
 * returns  bytes written */
size_t grpc_text_encode(const char *message, char *to, size_t cap);

/* grpc_text_decode - the message in a grpc-message: each %XX is a byte; anything else stays as it
 * is.
 * to       cap bytes; does not end in NUL
 * returns  bytes written */
size_t grpc_text_decode(const char *text, char *to, size_t cap);

/* grpc_text_coding - the coding of gRPC with this exact name; "" is IDENTITY. */
enum coding grpc_text_coding(const char *name, size_t len);

/* grpc_text_is_grpc - true for a content-type of gRPC with protobuf messages: application/grpc
 * or application/grpc+proto, each also with parameters after a ';'. */
bool grpc_text_is_grpc(const char *content_type, size_t len);
