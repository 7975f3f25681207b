#pragma once

#include "host.h"

/* respond - fill in a response with what a stub wrote, and send it.
 * in        read to the response's end
 * response  taken over
 * flags     of TRITONBACKEND_ResponseSend
 * returns   false: the record is none; an error was sent */
bool respond(struct host *host, struct wire_in *in, TRITONBACKEND_Response *response,
             uint32_t flags);
