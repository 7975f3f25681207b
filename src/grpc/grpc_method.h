#pragma once
/* What the methods of a front end are to its connections: which path is which, and who takes
 * its messages. */
#include "grpc/grpc_stream.h"
#include "server/options/options_front.h"

/* What a call says that comes on a connection of its own while the server stops. */
enum grpc_method_end {
    GRPC_METHOD_NOT_READY, /* UNAVAILABLE "Server not ready" */
    GRPC_METHOD_EXITING,   /* UNAVAILABLE "Server exiting" */
    GRPC_METHOD_SERVED,    /* it is served as ever */
};

struct grpc_method {
    const char *path;
    bool streams; /* the client sends any number of messages; else exactly one */
    bool tensors; /* messages are ModelInferRequests */
    enum options_category category;
    enum grpc_method_end end;

    /* message - a whole message came; of a unary call, also the end of what its client sends.
     * data, len  borrowed for the call
     * buf        what data lies in, NULL when it lies in received bytes; taken over by setting
     *            it to NULL */
    void (*message)(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf);
};

struct front_metrics_kind;

struct grpc_service {
    const struct grpc_method *methods; /* by use: the first are looked up fastest */
    size_t count;
    unsigned last_route; /* methods from this one on, counted from 1, are one route */

    /* metrics - the methods as routes: last_route of them, and 0 is every other path. Called
     * before the workers serve. */
    const struct front_metrics_kind *(*metrics)(void);
};

/* grpc_method_find - by the path of the call; NULL when there is none.
 * grpc_method_route - which of the service's routes a method is; NULL = 0. */
const struct grpc_method *grpc_method_find(const struct grpc_service *service, const char *path,
                                           size_t len);
unsigned grpc_method_route(const struct grpc_service *service, const struct grpc_method *m);
