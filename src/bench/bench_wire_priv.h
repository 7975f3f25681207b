#pragma once
/* What the two protocols share. */
#include "bench/bench_wire.h"

#include <stdint.h>

#define BENCH_WIRE_READ_BYTES ((size_t)256 << 10)

struct bench_grpc_conn;
struct nghttp2_session_callbacks;

struct bench_wire {
    const struct bench_options *options;
    struct loop *loop;
    uint8_t *buffer;                             /* what was read last */
    struct nghttp2_session_callbacks *callbacks; /* of gRPC */
    struct bench_grpc_conn *conn;                /* gets the next lane; owned by its lanes */
};

/* bench_wire_connect - a new connection to the server. */
struct err *bench_wire_connect(struct bench_wire *w, int *ret_fd);

struct err *bench_http_lane(struct bench_wire *w, struct bench_lane **ret);
struct err *bench_grpc_lane(struct bench_wire *w, enum bench_lane_kind kind,
                            struct bench_lane **ret);
