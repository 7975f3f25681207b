#pragma once

#include "host.h"

/* pack_request - write a request for the stub.
 * places   gains the offset of each piece of shared memory that was taken, a u64
 * id       its handle's
 * errors   of the server's functions; no memory, shared or not. Nothing is to be sent then */
TRITONSERVER_Error *pack_request(struct host *host, struct wire_out *out, struct wire_out *places,
                                 uint64_t id, TRITONBACKEND_Request *request);
