#pragma once
/* What the two sides of an isolated model say to each other.
 *
 * Parent -> child, on the socket of a lane: one frame of enum isolate_order, answered by frames
 * of records, the last of which ends with RECORD_DONE. Child -> parent besides: records about
 * requests on the control socket, from threads that run no order. */
#include "os/clock.h"

#define ISOLATE_ARGUMENT     "--isolated-model-process" /* the hidden first argument of the child */
#define ISOLATE_INLINE_BYTES 4096u /* tensors up to this size travel in messages */
#define ISOLATE_SLOTS        4096u /* large outputs that the parent may hold at once */
#define ISOLATE_MAX_PARAMS   65536u
#define ISOLATE_IDLE_NS      TIME_S(1) /* shared memory stays warm for so long */

enum isolate_order {
    ORDER_HELLO = 1,    /* load the backend: ATTRIBUTES */
    ORDER_MODEL,        /* initialize the model: CONFIG, USAGE */
    ORDER_CONFIG,       /* the configuration as it was published */
    ORDER_LANE,         /* a socket comes along: orders to an instance */
    ORDER_INSTANCE,     /* on its lane: initialize it: USAGE */
    ORDER_EXECUTE,      /* on its lane */
    ORDER_INSTANCE_END, /* on its lane: finalize it */
    ORDER_END,          /* finalize the model and the backend */
    ORDER_CANCEL,       /* on the control socket: the numbers of requests; no answer */
    ORDER_START,        /* the first on the control socket, with ISOLATE_FD_COUNT descriptors */
};

/* The descriptors of ORDER_START, in order. */
enum { ISOLATE_FD_LOG, ISOLATE_FD_IN, ISOLATE_FD_OUT, ISOLATE_FD_SETUP, ISOLATE_FD_COUNT };

/* A record: kind, then its body as a run of bytes. Those about a request begin with its number
 * and their own place in the order of the records about it. */
enum isolate_record {
    RECORD_DONE = 1, /* code, text or NULL */
    RECORD_ATTRIBUTES,
    RECORD_CONFIG,
    RECORD_USAGE,
    RECORD_BATCH,
    RECORD_RESPONSE, /* from here on about a request */
    RECORD_FLAGS,
    RECORD_RELEASE,
    RECORD_AGAIN, /* instead of RELEASE: it shall be executed again */
    RECORD_GONE,
    RECORD_STATISTICS,
    RECORD_RESPONSE_STATISTICS,
};

/* Where the bytes of a tensor are. */
enum isolate_place {
    PLACE_NONE,   /* there is no buffer */
    PLACE_INLINE, /* in the message */
    PLACE_SHARED, /* in shared memory, at an offset; of an output: after its slot */
};
