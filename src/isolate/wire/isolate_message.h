#pragma once
/* The messages between the two sides of an isolated model.
 *
 * Parent -> child, on the socket of a lane: one frame with an enum isolate_order. The child
 * answers with frames of records; the last one ends with RECORD_DONE. Child -> parent, on the
 * control socket: records about requests, sent by threads that run no order. */
#include "os/clock.h"

#define ISOLATE_ARGUMENT     "--isolated-model-process" /* the hidden first argument of the child */
#define ISOLATE_INLINE_BYTES 4096u /* tensors up to this size travel in messages */
#define ISOLATE_SLOTS        4096u /* large outputs that the parent may hold at once */
#define ISOLATE_MAX_PARAMS   65536u
#define ISOLATE_IDLE_NS      TIME_S(1) /* shared memory stays warm for this long */

enum isolate_order {
    ORDER_HELLO = 1,    /* load the backend; answer: ATTRIBUTES */
    ORDER_MODEL,        /* initialize the model; answer: CONFIG, USAGE */
    ORDER_CONFIG,       /* the published configuration */
    ORDER_LANE,         /* a socket comes with it, for orders to an instance */
    ORDER_INSTANCE,     /* on its lane: initialize the instance; answer: USAGE */
    ORDER_EXECUTE,      /* on its lane: execute a batch */
    ORDER_INSTANCE_END, /* on its lane: finalize the instance */
    ORDER_END,          /* finalize the model and the backend */
    ORDER_CANCEL,       /* on the control socket: the numbers of requests to cancel; no answer */
    /* the first order on the control socket, with ISOLATE_FD_COUNT descriptors */
    ORDER_START,
};

/* The descriptors of ORDER_START, in order. */
enum { ISOLATE_FD_LOG, ISOLATE_FD_IN, ISOLATE_FD_OUT, ISOLATE_FD_SETUP, ISOLATE_FD_COUNT };

/* A record is its kind, then its body as a run of bytes. The body of a record about a request
 * begins with the request's number and the record's place among the records about that request. */
enum isolate_record {
    RECORD_DONE = 1, /* code, text or NULL */
    RECORD_ATTRIBUTES,
    RECORD_CONFIG,
    RECORD_USAGE,
    RECORD_BATCH,
    RECORD_RESPONSE, /* from here on: records about a request */
    RECORD_FLAGS,
    RECORD_RELEASE,
    RECORD_AGAIN, /* instead of RELEASE: execute it again */
    RECORD_GONE,
    RECORD_STATISTICS,
    RECORD_RESPONSE_STATISTICS,
};

/* Where the bytes of a tensor are. */
enum isolate_place {
    PLACE_NONE,   /* there is no buffer */
    PLACE_INLINE, /* in the message */
    PLACE_SHARED, /* in shared memory, at an offset; for an output after its slot */
};
