#pragma once
/* The model repository extension over HTTP: index, load, unload. Worker's thread only. */
#include "base/err.h"

struct control_task;
struct http_exchange;
struct http_message;

/* http_repository_index - answer with the models in the repositories, now or after a look at
 * them.
 * errors  of the body; x is not answered then */
struct err *http_repository_index(struct http_exchange *x, struct http_message *m);

/* http_repository_control - load or unload a model; x is answered when that has ended. Errors as
 * above.
 * source  spec/model_repository_extension.txt, HTTP/REST */
struct err *http_repository_control(struct http_exchange *x, struct http_message *m);

/* http_repository_finish - what a task ends with whose owner is an exchange that is `pending`, and
 * that has nothing to tell but that it was done, or its error. Frees the task. */
void http_repository_finish(struct control_task *t);
