#pragma once
/* The model repository extension over HTTP: index, load, unload. Worker's thread only. */
#include "base/err.h"

struct http_exchange;
struct http_message;

/* http_repository_index - answer with what lies in the repositories, now or once they were
 * looked at.
 * errors  what is wrong with the body; x is not answered then */
struct err *http_repository_index(struct http_exchange *x, struct http_message *m);

/* http_repository_control - load or unload a model; x is answered when it is done. As above.
 * source  spec/model_repository_extension.txt, HTTP/REST */
struct err *http_repository_control(struct http_exchange *x, struct http_message *m);
