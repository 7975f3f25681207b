#pragma once
/* Copies texts that a client chose into its request, within limits. Each text has a fixed limit,
 * or the peer's account (base/budget.h) is charged for it until the request is freed. For front
 * ends, which build the request; one thread at a time. */
#include "base/err.h"
#include "infer/request.h"

#include <stddef.h>

/* The longest id of a request. Each response repeats it, and log lines contain it. */
#define REQUEST_TEXT_ID_BYTES ((size_t)16384)

/* The most bytes of an error message in an answer, because messages quote what the client sent. */
#define REQUEST_TEXT_MESSAGE_BYTES ((size_t)32768)

/* request_text_id - set r->id to a copy; an empty id stays "".
 * errors  INVALID_ARG when it is longer than REQUEST_TEXT_ID_BYTES */
struct err *request_text_id(struct request *r, const char *id, size_t len);

/* request_text_sequence - set r->correlation_string to a copy.
 * errors  UNSUPPORTED when it is longer than REQUEST_MAX_CORRELATION, in the reference's words */
struct err *request_text_sequence(struct request *r, const char *id, size_t len);

/* request_text_room - reserve memory in the account before `bytes` of text (parameters and their
 * names) are copied into the request.
 * errors  UNAVAILABLE if the account has no room for them */
struct err *request_text_room(const struct request *r, size_t bytes);

/* request_text_cut - how many bytes of a message an answer may carry: at most `most`, and never
 * a part of a UTF-8 character.
 * request_text_message - the same with REQUEST_TEXT_MESSAGE_BYTES. */
size_t request_text_cut(const char *message, size_t most);
size_t request_text_message(const char *message);
