#pragma once
/* From the responses of a model to the answer in OpenAI's form. Worker's thread only. */
#include "base/err.h"

#include <stdbool.h>

struct openai_call;
struct response;
struct strbuf;

/* openai_answer_take - read a response into the call.
 * ret     of a stream: the text of its chunk; else nothing is written
 * errors  INTERNAL: an output is not what the answer can tell; UNAVAILABLE: no room to keep it */
struct err *openai_answer_take(struct openai_call *call, const struct response *r,
                               struct strbuf *ret);

/* openai_answer_whole - the answer after the last response; there was one. */
void openai_answer_whole(struct openai_call *call, struct strbuf *ret);

/* openai_answer_last - of a stream: the chunk that ends the texts of which it was not told yet.
 * openai_answer_usage - the one that tells the numbers of tokens.
 * Each returns false if there is nothing to tell. */
bool openai_answer_last(struct openai_call *call, struct strbuf *ret);
bool openai_answer_usage(const struct openai_call *call, struct strbuf *ret);
