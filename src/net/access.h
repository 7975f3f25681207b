#pragma once
/* The data for the access log, collected while a request is served. Exists only while that log
 * is on. */
#include "os/clock.h"

#include <stddef.h>
#include <stdint.h>

struct access {
    time_ns begun;
    uint64_t in_bytes;
    uint64_t out_bytes;
    const char *protocol; /* static, like method */
    const char *method;
    char *model; /* NULL = none; owned, like id */
    char *id;
    char peer[64];
};

/* access_begin - begin the record of a request that came from fd; NULL while the log is off.
 * protocol, method  static */
struct access *access_begin(int fd, const char *protocol, const char *method);

/* access_about - set the model and the request id, which are copied. a may be NULL. */
void access_about(struct access *a, const char *model, size_t model_len, const char *id,
                  size_t id_len);

/* access_end - write the line and free a, which may be NULL.
 * route  static */
void access_end(struct access *a, const char *route, int status);
