#pragma once
/* POST /v2/models/M[/versions/V]/generate and /generate_stream: a flat JSON object, whose members
 * are the model's inputs and the request's parameters, and the same back: once, or as an event
 * for each response. Worker's thread only. */
#include <stdbool.h>

struct http_exchange;
struct http_message;

/* http_generate_serve - check the message, build the request, give it to the model; x is answered
 * in any case. */
void http_generate_serve(struct http_exchange *x, struct http_message *m, bool streamed);
