#pragma once

#include "host.h"

/* Executions: requests go to the stub, responses come back. */

/* execute_requests - have a batch executed and answered.
 * requests  taken over: each is answered and released */
void execute_requests(struct host *host, TRITONBACKEND_Request **requests, uint32_t count);

/* execute_heard, execute_send, execute_drop - what the stub sends about requests: the end of an
 * execution, a response by a sender, the end of a sender. Under stub->reading. */
void execute_heard(struct host *host, struct heard *heard);
void execute_send(struct host *host, struct heard *heard);
void execute_drop(struct host *host, uint64_t id);
