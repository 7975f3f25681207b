#pragma once
/* Keeps a server under load and measures it: so many requests at a time, or so many a second. One
 * thread, which runs the loop. */
#include "base/err.h"
#include "bench/bench_request.h"
#include "bench/bench_window.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_load;
struct bench_wire;
struct loop;

/* What a level showed. */
struct bench_result {
    double level; /* requests at a time, or a second */
    bool steady;
    uint32_t trials; /* windows until then */
    struct bench_window measured;
};

struct bench_load_settings {
    const struct bench_options *options;
    struct loop *loop;
    struct bench_wire *wire;
    const struct bench_data *data;
    const struct bench_request *requests; /* one for each step of the data */
    bool statistics;                      /* the server has statistics of the model */
    bool sequences;                       /* the model takes them */
    bool decoupled;                       /* it gives any number of responses, over a stream */
    /* each window that ends; trial counts from 1 */
    void (*progress)(void *arg, double level, uint32_t trial, const struct bench_window *w);
    void *arg;
};

/* bench_load_new - everything in s is borrowed until bench_load_free. Connects one lane.
 * errors  UNAVAILABLE */
struct err *bench_load_new(const struct bench_load_settings *s, struct bench_load **ret);
void bench_load_free(struct bench_load *l);

/* bench_load_stop - end the level early, with the windows that were measured; without any,
 * bench_load_measure returns an error. On the loop's thread. */
void bench_load_stop(struct bench_load *l);

/* bench_load_measure - load the server with one level until the windows are steady, or there were
 * enough; then wait for what is under way.
 * errors  those of the first call that failed; CANCELLED: stopped before a window was over */
struct err *bench_load_measure(struct bench_load *l, double level, struct bench_result *ret);
