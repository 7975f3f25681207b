#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../common/berr.h"

TRITONSERVER_Error *profile_find(const char *name, const char *instance, int32_t count,
                                 int32_t *ret_index)
{
    char *end;
    long index = strtol(name, &end, 10);
    if (end == name || *end || index < 0 || index >= count)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "Can not set the specified optimization profile %s for %s. Expected "
                        "optimization profile index range 0-%" PRId32,
                        name, instance, count - 1);
    *ret_index = (int32_t)index;
    return NULL;
}

/* The first number that lies outside; the count of the range if all fit. */
static size_t first_outside(const struct profile_range *range, const int64_t *numbers)
{
    size_t i = 0;
    while (i < range->count && numbers[i] >= range->min[i] && numbers[i] <= range->max[i])
        i++;
    return i;
}

static TRITONSERVER_Error *profile_check_dims(const struct profile_range *range,
                                              const struct profile_given *given,
                                              const char *instance)
{
    if (given->rank != range->count)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "request specifies invalid shape for input '%s' for %s. Error details: "
                        "model expected %zu dimensions but received %zu dimensions",
                        given->name, instance, range->count, given->rank);
    size_t at = first_outside(range, given->dims);
    if (at == range->count)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "request specifies invalid shape for input '%s' for %s. Error details: model "
                    "expected the shape of dimension %zu to be between %" PRId64 " and %" PRId64
                    " but received %" PRId64,
                    given->name, instance, at, range->min[at], range->max[at], given->dims[at]);
}

static TRITONSERVER_Error *profile_check_values(const struct profile_range *range,
                                                const struct profile_given *given,
                                                const char *instance)
{
    if (given->count != range->count)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' for %s: mismatch between the number of shape values. Expecting "
                        "%zu. Got %zu",
                        given->name, instance, range->count, given->count);
    size_t at = first_outside(range, given->values);
    if (at == range->count)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "input '%s' for %s: The shape value at index %zu is expected to be in range "
                    "from %" PRId64 " to %" PRId64 ", Got: %" PRId64,
                    given->name, instance, at, range->min[at], range->max[at], given->values[at]);
}

TRITONSERVER_Error *profile_check(const struct profile *profile, const struct profile_given *given,
                                  size_t count, const char *instance)
{
    TRITONSERVER_Error *err = NULL;
    for (size_t i = 0; i < count && !err; i++) {
        err = profile_check_dims(&profile->limits[i].dims, &given[i], instance);
        if (!err)
            err = profile_check_values(&profile->limits[i].values, &given[i], instance);
    }
    return err;
}

static bool range_allows(const struct profile_range *range, const int64_t *numbers, size_t count)
{
    return count == range->count && first_outside(range, numbers) == count;
}

/* Numbers within a range differ from its best by less than 2^64; the sum stays below the most. */
static uint64_t range_distance(const struct profile_range *range, const int64_t *numbers)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < range->count; i++) {
        uint64_t one = numbers[i] > range->best[i]
                           ? (uint64_t)numbers[i] - (uint64_t)range->best[i]
                           : (uint64_t)range->best[i] - (uint64_t)numbers[i];
        if (__builtin_add_overflow(sum, one, &sum))
            return UINT64_MAX - 1;
    }
    return sum;
}

/* UINT64_MAX if the profile does not allow it. */
static uint64_t profile_distance(const struct profile *profile, const struct profile_given *given,
                                 size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct profile_limits *limits = &profile->limits[i];
        if (!range_allows(&limits->dims, given[i].dims, given[i].rank) ||
            !range_allows(&limits->values, given[i].values, given[i].count))
            return UINT64_MAX;
        const uint64_t parts[] = {range_distance(&limits->dims, given[i].dims),
                                  range_distance(&limits->values, given[i].values)};
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
            if (__builtin_add_overflow(sum, parts[p], &sum) || sum == UINT64_MAX)
                sum = UINT64_MAX - 1;
    }
    return sum;
}

TRITONSERVER_Error *profile_choose(const struct profile *profiles, size_t profile_count,
                                   const struct profile_given *given, size_t count,
                                   const char *instance, size_t *ret_at)
{
    size_t nearest = 0;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < profile_count; i++) {
        uint64_t distance = profile_distance(&profiles[i], given, count);
        if (distance < least) {
            least = distance;
            nearest = i;
        }
    }
    if (least == UINT64_MAX && profile_count == 1)
        return profile_check(&profiles[0], given, count, instance);
    if (least == UINT64_MAX) {
        TRITONSERVER_Error *first = profile_check(&profiles[0], given, count, instance);
        TRITONSERVER_Error *err =
            berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "failed to find any Optimization Profile among %zu to support the requested "
                     "dimensions (or shape values); by profile %s: %s",
                     profile_count, profiles[0].name, TRITONSERVER_ErrorMessage(first));
        berr_drop(first);
        return err;
    }
    *ret_at = nearest;
    return NULL;
}

int64_t profile_most_rows(const struct profile *profile, size_t count)
{
    int64_t most = INT32_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct profile_limits *limits = &profile->limits[i];
        const struct profile_range *range = limits->values.count ? &limits->values : &limits->dims;
        if (range->count == 0)
            return 0;
        if (range->max[0] < most)
            most = range->max[0];
    }
    return count && most > 0 ? most : 0;
}

TRITONSERVER_Error *profile_read_values(struct profile_given *given, TRITONSERVER_DataType datatype,
                                        int64_t rows, const void *data, uint64_t size)
{
    uint64_t element = TRITONSERVER_DataTypeByteSize(datatype);
    if (datatype != TRITONSERVER_TYPE_INT32 && datatype != TRITONSERVER_TYPE_INT64)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s': Unsupported data type received for Shape tensor: %s",
                        given->name, TRITONSERVER_DataTypeString(datatype));
    if (size % element || size / element > PROFILE_MOST_VALUES - 1)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "input '%s' is a shape tensor of %" PRIu64
                        " bytes: at most %d values of %" PRIu64 " bytes are served",
                        given->name, size, PROFILE_MOST_VALUES - 1, element);
    given->count = 0;
    if (rows)
        given->values[given->count++] = rows;
    for (uint64_t i = 0; i < size / element; i++) {
        int32_t narrow = 0;
        int64_t wide = 0;
        if (datatype == TRITONSERVER_TYPE_INT32)
            memcpy(&narrow, (const char *)data + i * element, sizeof narrow);
        else
            memcpy(&wide, (const char *)data + i * element, sizeof wide);
        given->values[given->count++] = datatype == TRITONSERVER_TYPE_INT32 ? narrow : wide;
    }
    return NULL;
}

void profile_write_values(const struct profile_given *given, TRITONSERVER_DataType datatype,
                          void *to)
{
    for (size_t i = 0; i < given->count; i++) {
        int32_t narrow = (int32_t)given->values[i];
        if (datatype == TRITONSERVER_TYPE_INT32)
            memcpy((char *)to + i * sizeof narrow, &narrow, sizeof narrow);
        else
            memcpy((char *)to + i * sizeof *given->values, &given->values[i],
                   sizeof *given->values);
    }
}
