#pragma once

#include "host.h"

/* Requests of a model to other models. */

/* nested_begin - the stub asks another model; heard->data is kept. Under stub->reading. */
void nested_begin(struct host *host, struct heard *heard);

/* nested_cancel - cancel the request with this id, if it is on its way. Any thread. */
void nested_cancel(struct host *host, uint64_t id);
void nested_cancel_all(struct host *host);

/* nested_cancel_unwanted - cancel all if nobody waits for a response of the stub any more. Under
 * stub->reading. */
void nested_cancel_unwanted(struct host *host);
