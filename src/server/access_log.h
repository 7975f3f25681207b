#pragma once
/* The access log: a line for each request that was answered. Off until access_log_set; then a
 * request costs one load. */
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access_entry {
    const char *peer;     /* "192.0.2.7:40312", "unix", or "-" */
    const char *protocol; /* "http", "grpc", "metrics" */
    const char *method;   /* "GET", "ModelInfer" */
    const char *route;    /* the pattern that the request matched */
    const char *model;    /* "" = about none */
    const char *id;       /* of the request; "" = has none */
    int status;           /* of HTTP or of gRPC */
    uint64_t in_bytes;    /* of the request's body or messages */
    uint64_t out_bytes;   /* of the answer's */
    time_ns duration_ns;  /* from the request's head to the answer */
};

/* access_log_set - write to a descriptor, which is borrowed; -1 = off.
 * json  an object a line */
void access_log_set(int fd, bool json);

/* access_log_on - whether lines are wanted. Any thread. */
bool access_log_on(void);

/* Of the model's name and of the id at most so many bytes are written, as they stand in the
 * line: a line is then shorter than what a pipe takes at once. */
#define ACCESS_LOG_VALUE_BYTES 1024u

/* access_log_put - write one line. Any thread. */
void access_log_put(const struct access_entry *e);
