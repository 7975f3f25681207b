#pragma once
/* The interface of the methods of a front end: which path is which, and who gets the messages. */
#include "grpc/grpc_stream.h"
#include "server/options/options_front.h"

/* What a call gets if its connection was opened while the server stops. */
enum grpc_method_end {
    GRPC_METHOD_NOT_READY, /* UNAVAILABLE "Server not ready" */
    GRPC_METHOD_EXITING,   /* UNAVAILABLE "Server exiting" */
    GRPC_METHOD_SERVED,    /* it is served normally */
};

/* The largest message of a method whose messages are not large. Unpacked it may need fifty times
 * as much, which is charged to nobody. */
#define GRPC_METHOD_SMALL_BYTES ((uint32_t)1 << 16)

struct grpc_method {
    const char *path;
    bool streams; /* the client may send any number of messages; else exactly one */
    bool tensors; /* its messages are ModelInferRequests */
    bool large;   /* its messages have at most GRPC_INBOX_MAX_BYTES */
    enum options_category category;
    enum grpc_method_end end;

    /* message - a whole message came; for a unary call, also the end of the client's side.
     * data, len  borrowed for the call
     * buf        the buffer of data; NULL if data lies in received bytes; the method takes it
     *            over by setting it to NULL */
    void (*message)(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);
};

struct front_metrics_kind;

struct grpc_service {
    const struct grpc_method *methods; /* the most used first, because they are found fastest */
    size_t count;
    unsigned last_route; /* all methods from this one on (counted from 1) share one route */

    /* metrics - the methods as routes: last_route of them; 0 is every other path. Called before
     * the workers serve. */
    const struct front_metrics_kind *(*metrics)(void);
};

/* grpc_method_max_bytes - the largest message of a method, also when it is decompressed. */
static inline uint32_t grpc_method_max_bytes(const struct grpc_method *m)
{
    return m->large ? GRPC_INBOX_MAX_BYTES : GRPC_METHOD_SMALL_BYTES;
}

/* grpc_method_find - the method with a path; NULL if there is none.
 * grpc_method_route - the route of a method; NULL = 0. */
const struct grpc_method *grpc_method_find(const struct grpc_service *service, const char *path,
                                           size_t len);
unsigned grpc_method_route(const struct grpc_service *service, const struct grpc_method *m);
