#pragma once
/* Texts of a request that its client chooses, and their limits: what they take is bounded, or
 * held by the account of its peer (base/budget.h) until the request is freed. For front ends,
 * which build the request; one thread at a time. */
#include "base/err.h"
#include "infer/request.h"

#include <stddef.h>

/* The longest id of a request: it comes back with each response, and stands in lines of the log. */
#define REQUEST_TEXT_ID_BYTES ((size_t)16384)

/* The most bytes of an error's message that an answer carries: messages quote what the client
 * sent. */
#define REQUEST_TEXT_MESSAGE_BYTES ((size_t)32768)

/* request_text_id - set r->id to a copy; an empty one stays "".
 * errors  INVALID_ARG when it is longer than REQUEST_TEXT_ID_BYTES */
struct err *request_text_id(struct request *r, const char *id, size_t len);

/* request_text_sequence - set r->correlation_string to a copy.
 * errors  UNSUPPORTED when it is longer than REQUEST_MAX_CORRELATION, in the reference's words */
struct err *request_text_sequence(struct request *r, const char *id, size_t len);

/* request_text_room - texts of so many bytes are about to be copied into the request, whose
 * account holds them: parameters, and their names.
 * errors  UNAVAILABLE when the account has no room for them */
struct err *request_text_room(const struct request *r, size_t bytes);

/* request_text_cut - how many bytes of an error's message an answer carries: all, or what ends
 * before a character of UTF-8 that would pass `most`. request_text_message - the same, for
 * REQUEST_TEXT_MESSAGE_BYTES. */
size_t request_text_cut(const char *message, size_t most);
size_t request_text_message(const char *message);
