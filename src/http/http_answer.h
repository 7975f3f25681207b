#pragma once
/* Writes the text of answers: status line and headers, and the JSON of a model's response.
 * Worker's thread only. */
#include "base/err.h"

#include <stddef.h>

struct http_exchange;
struct http_out;
struct param;
struct tensor_output;

/* Texts up to this size are copied after their head; larger ones are written from where they
 * lie. */
#define HTTP_ANSWER_COPY_BYTES ((size_t)4096)

/* Room for the status line and the headers, in front of the body. */
#define HTTP_ANSWER_HEAD_BYTES ((size_t)1024)

/* http_answer_prepare - make a model's response ready to be written: replace tensors by classes
 * where requested, check every output so that writing cannot fail, and compute the most bytes of
 * the text.
 * errors  the response's own, and outputs that JSON cannot represent */
struct err *http_answer_prepare(struct http_exchange *x);

/* http_answer_room - the most bytes of an answer's text, with the head; SIZE_MAX if the number
 * overflows. */
size_t http_answer_room(const struct http_exchange *x);

/* http_answer_body - write only the body of a model's response: its JSON to `to`
 * (http_answer_room bytes), all pieces into `out`. Sets content_type and json_len of x. */
void http_answer_body(struct http_exchange *x, char *to, struct http_out *out);

/* http_answer_check_json - whether an output can be written as JSON.
 * room  the most bytes that its data take are added; SIZE_MAX when it is past counting */
struct err *http_answer_check_json(const struct tensor_output *o, size_t *room);

/* http_answer_put_param - the value of a parameter, as JSON; returns its end. */
char *http_answer_put_param(char *to, const struct param *p);

/* http_answer_put_head - the status line and the headers of a stream; returns their end. */
char *http_answer_put_head(char *to, const struct http_exchange *x);

/* http_answer_write - write the whole answer: its text to `to` (room bytes), and all pieces into
 * `out`.
 * returns  how many bytes at `to` are used */
size_t http_answer_write(struct http_exchange *x, char *to, struct http_out *out);
