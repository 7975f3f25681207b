#pragma once
/* Inference requests as bytes. Tensors, which are the same each time, are written once; in front of
 * them comes a head, which may differ from request to request. Pure. */
#include "base/strbuf.h"
#include "bench/bench_data.h"
#include "bench/bench_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request of a step, without its head. */
struct bench_request {
    struct strbuf rest; /* over HTTP: JSON without its first bytes, then raw tensors */
    size_t json_len;    /* of it */
};

/* Where in a sequence a request stands; id 0 = in none. */
struct bench_place {
    uint64_t sequence;
    bool start, end;
    bool final_flag; /* the last response shall say that it is; gRPC only */
};

/* bench_request_make - write what each request of a step has in common. */
void bench_request_make(const struct bench_options *o, const struct bench_step *s,
                        struct bench_request *ret);

/* bench_request_head - append what comes in front: over HTTP the head of the message and the
 * beginning of its JSON, over gRPC the prefix and the parameters. */
void bench_request_head(const struct bench_options *o, const struct bench_request *r,
                        const struct bench_place *place, struct strbuf *to);
