#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A runtime that is called in a loop and by nobody else: what a server around it is compared with. One program for each runtime, which
 * computes with one thread:
 *
 *     PROGRAM FILE INPUT DIMS OUTPUT      DIMS: as in 1x64x768; both tensors are FP32
 *
 * Reads numbers of seconds, one a line, runs the network for so long, and answers with a line: how many runs, what they took in seconds, in
 * seconds of a processor, and the sum of the last output. Ends with its input; whatever fails ends it with a status other than 0. */

enum { BARE_DIMS = 8 };

struct bare {
    const char *file, *input, *output;
    int64_t dims[BARE_DIMS];
    size_t rank, count, size; /* numbers and bytes of the input */
    float *values;            /* i/count - 0.5 at place i */
};

static void bare_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static struct bare bare_read_arguments(int count, char **arguments)
{
    if (count != 5)
        bare_fail(arguments[0], "wanted: FILE INPUT DIMS OUTPUT");
    struct bare bare = {
        .file = arguments[1], .input = arguments[2], .output = arguments[4], .count = 1};
    for (char *dims = arguments[3], *end; *dims && bare.rank < BARE_DIMS;
         dims = *end ? end + 1 : end) {
        bare.dims[bare.rank] = strtoll(dims, &end, 10);
        bare.count *= (size_t)bare.dims[bare.rank++];
    }
    bare.size = bare.count * sizeof *bare.values;
    bare.values = (float *)malloc(bare.size);
    if (!bare.values)
        bare_fail(arguments[0], "no memory for the input");
    for (size_t i = 0; i < bare.count; i++)
        bare.values[i] = (float)i / (float)bare.count - 0.5f;
    return bare;
}

static double bare_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* run: computes once, and returns the sum of the output if it is wanted. */
static void bare_loop(float (*run)(void *network, int sums), void *network)
{
    double seconds;
    while (scanf("%lf", &seconds) == 1) {
        double began = bare_seconds(CLOCK_MONOTONIC), cpu = bare_seconds(CLOCK_PROCESS_CPUTIME_ID),
               took = 0;
        size_t runs = 0;
        for (; took < seconds; took = bare_seconds(CLOCK_MONOTONIC) - began, runs++)
            run(network, 0);
        cpu = bare_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        printf("%zu %.6f %.6f %.6g\n", runs, took, cpu, (double)run(network, 1));
        fflush(stdout);
    }
}

static inline float bare_sum(const float *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return (float)sum;
}
