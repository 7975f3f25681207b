#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "triton/core/tritonserver.h"

/* Optimization profiles: for which shapes a plan was made, and for which of them best. No GPU and
 * no TensorRT is needed for what is here. */

#ifdef __cplusplus
extern "C" {
#endif

enum { PROFILE_MOST_DIMS = 8, PROFILE_MOST_VALUES = 64 };

/* From where to where numbers may go, and for which the plan was made. */
struct profile_range {
    size_t count;
    int64_t min[PROFILE_MOST_VALUES], best[PROFILE_MOST_VALUES], max[PROFILE_MOST_VALUES];
};

/* What a profile allows for one input. */
struct profile_limits {
    struct profile_range dims;
    struct profile_range values; /* of a shape tensor; else none */
};

struct profile {
    const char *name;              /* as the configuration writes it */
    int32_t index;                 /* in the plan */
    struct profile_limits *limits; /* one for each input, in the order of the plan */
};

/* An input as one execution has it. */
struct profile_given {
    const char *name;
    size_t rank;
    int64_t dims[PROFILE_MOST_DIMS];
    size_t count; /* of the values of a shape tensor; else 0 */
    int64_t values[PROFILE_MOST_VALUES];
};

/* profile_find - which profile of a plan a configuration means.
 * instance  its name, for errors
 * count     the profiles of the plan
 * errors    INVALID_ARG if the plan has no such profile */
TRITONSERVER_Error *profile_find(const char *name, const char *instance, int32_t count,
                                 int32_t *ret_index);

/* profile_check - whether a profile allows an execution.
 * given     `count` inputs, in the order of the plan
 * instance  its name, for errors
 * errors    INVALID_ARG, naming the input and what the profile allows */
TRITONSERVER_Error *profile_check(const struct profile *profile, const struct profile_given *given,
                                  size_t count, const char *instance);

/* profile_choose - the profile that was made for shapes nearest to those of an execution: the sum
 * of all differences of dimensions and values is least; of several, the first in the list.
 * profiles  `profile_count` of them, at least one
 * ret_at    its place in the list
 * errors    INVALID_ARG if none allows the execution */
TRITONSERVER_Error *profile_choose(const struct profile *profiles, size_t profile_count,
                                   const struct profile_given *given, size_t count,
                                   const char *instance, size_t *ret_at);

/* profile_most_rows - the largest batch that a profile allows: the first dimension of its inputs,
 * and the first value of its shape tensors.
 * returns  0 if an input has none */
int64_t profile_most_rows(const struct profile *profile, size_t count);

/* profile_read_values - the values of a shape tensor of an execution: those of the request, behind
 * the number of rows if the model batches.
 * datatype  INT32 or INT64
 * rows      of the whole batch; 0 = the model does not batch
 * errors    INVALID_ARG for other types, sizes that do not fit, or too many values */
TRITONSERVER_Error *profile_read_values(struct profile_given *given, TRITONSERVER_DataType datatype,
                                        int64_t rows, const void *data, uint64_t size);

/* profile_write_values - the same values as TensorRT reads them.
 * to  room for as many */
void profile_write_values(const struct profile_given *given, TRITONSERVER_DataType datatype,
                          void *to);

#ifdef __cplusplus
}
#endif
