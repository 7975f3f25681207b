#pragma once
/* The access log: one line per answered request. Off until access_log_set; while it is off, a
 * request costs one load. */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access_entry {
    const char *peer;     /* the client's address: "192.0.2.7:40312", "unix", or "-" */
    const char *protocol; /* "http", "grpc", "metrics" */
    const char *method;   /* "GET", "ModelInfer" */
    const char *route;    /* the pattern that the request matched */
    const char *model;    /* "" = not about a model */
    const char *id;       /* of the request; "" = no id */
    int status;           /* of HTTP or of gRPC */
    uint64_t in_bytes;    /* of the request's body or messages */
    uint64_t out_bytes;   /* of the answer's body or messages */
    time_ns duration_ns;  /* from the request's headers to the answer */
};

/* access_log_set - write to a descriptor, which is borrowed; -1 = off.
 * json  one JSON object per line */
void access_log_set(int fd, bool json);

/* access_log_on - true if lines are written. Any thread. */
bool access_log_on(void);

/* The most bytes of the model's name and of the id in a line, after escaping. So a line is
 * always shorter than what a pipe takes at once. */
#define ACCESS_LOG_VALUE_BYTES 1024u

/* access_log_put - write one line. Any thread. */
void access_log_put(const struct access_entry *e);
