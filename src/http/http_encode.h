#pragma once
/* Answers that are compressed because of Accept-Encoding. Worker's thread only. */
struct http_exchange;

/* http_encode - compress a model's response with x->accept, after http_answer_prepare, then
 * complete the answer: at once if it is small, else after a helper has finished. If compression
 * fails, the answer is sent uncompressed. */
void http_encode(struct http_exchange *x);
