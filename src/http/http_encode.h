#pragma once
/* Answers that are compressed, as Accept-Encoding asked. Worker's thread only. */
struct http_exchange;

/* http_encode - compress a model's response that http_answer_prepare has looked at, with
 * x->accept, then complete the answer: at once when it is small, else once a helper is through.
 * What cannot be compressed goes out as it is. */
void http_encode(struct http_exchange *x);
