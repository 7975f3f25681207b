#pragma once
/* The tensors that a load tester sends: made up, or out of files. */
#include "base/err.h"
#include "bench/bench_model.h"
#include "bench/bench_options.h"

#include <stddef.h>
#include <stdint.h>

#define BENCH_DATA_STEPS      100000u           /* of a file */
#define BENCH_DATA_BYTES      ((size_t)1 << 30) /* of one tensor */
#define BENCH_DATA_FILE_BYTES ((size_t)1 << 31)

struct bench_tensor {
    const struct bench_input *input;
    int64_t dims[BENCH_MODEL_RANK]; /* with the batch */
    uint32_t rank;
    char *bytes;
    size_t len;
    const char *region; /* of shared memory that has them too; NULL = none */
    uint64_t offset;    /* there */
    uint64_t elements;
};

/* What one request sends. */
struct bench_step {
    struct bench_tensor *tensors;
    uint32_t tensor_count; /* an optional input may be left out */
};

/* The steps of one sequence, in order. */
struct bench_list {
    uint32_t first, count; /* of the steps; count is at least 1 */
};

struct bench_data {
    struct bench_step *steps;
    uint32_t step_count;
    struct bench_list *lists; /* of a JSON file, which has at least one; else there are none */
    uint32_t list_count;
};

/* bench_data_make - all steps, as the options ask.
 * m       borrowed until bench_data_fini
 * errors  INVALID_ARG with the input and what to write; those of the files */
struct err *bench_data_make(const struct bench_options *o, const struct bench_model *m,
                            struct bench_data *ret);
void bench_data_fini(struct bench_data *d);
