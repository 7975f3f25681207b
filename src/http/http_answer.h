#pragma once
/* The text of answers: status line and headers, and the JSON of a model's response. Worker's
 * thread only. */
#include "base/err.h"

#include <stddef.h>

struct http_exchange;
struct http_out;

/* Room that the status line and the headers take, in front of the body. */
#define HTTP_ANSWER_HEAD_BYTES ((size_t)512)

/* http_answer_prepare - make a model's response ready to be written: classes in place of tensors
 * where they were asked for, a check of every output, so that writing cannot fail, and the most
 * bytes that the text can take.
 * errors  the response's own, and outputs that cannot be shown as JSON */
struct err *http_answer_prepare(struct http_exchange *x);

/* http_answer_room - the most bytes that the text of an answer takes, the head included;
 * SIZE_MAX when it is past counting. */
size_t http_answer_room(const struct http_exchange *x);

/* http_answer_body - the body alone of a model's response: its JSON at `to` (http_answer_room
 * bytes), all pieces into `out`; tells x content_type and json_len. */
void http_answer_body(struct http_exchange *x, char *to, struct http_out *out);

/* http_answer_write - put the answer together: its text at `to` (room bytes), and all pieces
 * into `out`.
 * returns  how many bytes at `to` are in use */
size_t http_answer_write(struct http_exchange *x, char *to, struct http_out *out);
