#pragma once
/* Inputs in POSIX shared memory that the server has registered. */
#include "base/err.h"
#include "bench/bench_data.h"
#include "bench/bench_options.h"

struct bench_memory;
struct bench_wire;

/* bench_memory_share - put every tensor of the data into one region, tell the tensors, and register
 * the region. Runs the loop.
 * o, w, d  borrowed until bench_memory_free
 * errors   UNAVAILABLE: there is no room; the server's words when it does not take the region */
struct err *bench_memory_share(const struct bench_options *o, struct bench_wire *w,
                               struct bench_data *d, struct bench_memory **ret);

/* bench_memory_free - the server forgets the region. NULL is fine. */
void bench_memory_free(struct bench_memory *m);
