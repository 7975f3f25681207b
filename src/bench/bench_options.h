#pragma once
/* The command line of `nereid bench`. Options have the names that perf_analyzer gave them. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_OPTIONS_SHAPES  64u
#define BENCH_OPTIONS_RANK    32u
#define BENCH_OPTIONS_LEVELS  1000u     /* the most levels of a range */
#define BENCH_OPTIONS_RATE    10000000u /* the most requests a second */
#define BENCH_OPTIONS_SLOTS   10000u    /* the most requests under way */
#define BENCH_OPTIONS_STRINGS 65536u    /* the longest string made up */

/* How a level or a percentage is written: a rate of millions in full. */
#define BENCH_OPTIONS_NUMBER "%.10g"

enum bench_protocol {
    BENCH_HTTP,
    BENCH_GRPC,
};

/* first, first + step, ... */
struct bench_range {
    bool given;
    double first, step;
    uint32_t count;
};

/* --shape NAME:DIM,DIM */
struct bench_shape {
    const char *name; /* name_len bytes of an argument */
    size_t name_len;
    int64_t dims[BENCH_OPTIONS_RANK];
    uint32_t rank;
};

/* Strings are those of the command line. */
struct bench_options {
    const char *model;
    const char *version; /* "" = the server chooses */
    char *host;          /* owned */
    uint16_t port;
    char *address; /* both, for people; owned */
    enum bench_protocol protocol;
    struct bench_range concurrency, rate;
    bool poisson;
    uint32_t slots; /* requests under way at most, with a request rate */
    uint32_t batch_size;
    struct bench_shape shapes[BENCH_OPTIONS_SHAPES];
    uint32_t shape_count;
    const char *input_data; /* "random", "zero", a file or a directory */
    uint32_t string_length;
    const char *string_data; /* NULL = made up */
    bool json_input, json_output;
    double percentile; /* 0 = the mean decides */
    uint32_t interval_ms;
    double stability; /* percent */
    uint32_t max_trials;
    double latency_limit_ms; /* 0 = none */
    uint32_t calls_per_connection;
    bool streaming;
    bool shared_memory;        /* inputs lie in it */
    uint32_t sequence_length;  /* requests of a sequence on average; 0 = not given */
    double sequence_variation; /* percent */
    uint32_t sequence_first;   /* the correlation id of the first one */
    uint32_t sequence_count;   /* at a time, with a request rate */
    const char *csv, *html;
    bool verbose, help;
};

/* bench_options_parse - read the arguments after the word "bench".
 * ret     bench_options_fini it, also after an error
 * errors  INVALID_ARG with the option and what it takes */
struct err *bench_options_parse(int argc, char **argv, struct bench_options *ret);
void bench_options_fini(struct bench_options *o);

/* bench_options_authority - what requests name as the server: the address, but of a Unix socket,
 * which has no name of that kind. */
const char *bench_options_authority(const struct bench_options *o);

/* bench_options_help - the text of --help; the caller frees it (mem_free). */
char *bench_options_help(void);

/* bench_options_level - the n-th value of a range; false if the range has fewer. */
bool bench_options_level(const struct bench_range *r, uint32_t n, double *ret);
