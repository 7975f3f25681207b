#pragma once

#include "host.h"
#include "triton/core/nereid_backend.h"

/* Executions: requests go to the stub, responses come back. */

/* execute_requests - have a batch executed and answered.
 * requests  taken over: each is answered and released */
void execute_requests(struct host *host, TRITONBACKEND_Request **requests, uint32_t count);

/* The same in halves, as nereid_backend.h has it: execute_begin, execute_look, execute_finish.
 * execute_forget - free what they need; no batch is begun. */
bool execute_begin(struct host *host, TRITONBACKEND_Request **requests, uint32_t count);
enum nereid_progress execute_look(struct host *host);
void execute_finish(struct host *host);
void execute_forget(struct host *host);

/* execute_heard, execute_send, execute_drop - what the stub sends about requests: the end of an
 * execution, a response by a sender, the end of a sender. Under stub->reading. */
void execute_heard(struct host *host, struct heard *heard);
void execute_send(struct host *host, struct heard *heard);
void execute_drop(struct host *host, uint64_t id);
