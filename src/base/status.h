#pragma once
/* The fixed set of error codes, and how each protocol shows them. One row per code in
 * status.def. */

enum status {
#define STATUS(name, abi, http, grpc, text) STATUS_##name = (abi),
#include "base/status.def"
#undef STATUS
};

/* status_text - the words of the C ABI for a code, e.g. "Invalid argument"; never NULL. */
const char *status_text(enum status code);

/* status_http, status_grpc - the HTTP status and the gRPC status code for an error with this
 * code. */
int status_http(enum status code);
int status_grpc(enum status code);
