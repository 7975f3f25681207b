#include "graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"

static const int64_t usual_rows[] = {1, 2, 3, 4, 6, 8, 12, 16};
enum { USUAL_ROWS = sizeof usual_rows / sizeof *usual_rows };

/* Adds a batch size if it is none of the others and the model has it. */
static void add_rows(int64_t rows, int64_t max_batch_size, struct graph_spec *specs, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        if (specs[i].rows == rows)
            return;
    if (rows >= 0 && rows <= max_batch_size)
        specs[(*count)++] = (struct graph_spec){.rows = rows, .least_rows = rows};
}

static TRITONSERVER_Error *list_usual(yyjson_val *config, int64_t max_batch_size,
                                      struct graph_spec **ret, size_t *ret_count)
{
    yyjson_val *batcher = yyjson_obj_get(config, "dynamic_batching"), *rows;
    size_t index, count;
    if (!batcher)
        batcher = yyjson_obj_get(yyjson_obj_get(config, "sequence_batching"), "oldest");
    yyjson_val *preferred = yyjson_obj_get(batcher, "preferred_batch_size");
    struct graph_spec *specs = calloc(yyjson_arr_size(preferred) + USUAL_ROWS + 2, sizeof *specs);
    if (!specs)
        return berr_no_memory();
    *ret = specs;
    *ret_count = 0;
    add_rows(max_batch_size > 0 ? 1 : 0, max_batch_size, specs, ret_count);
    yyjson_arr_foreach(preferred, index, count, rows)
    {
        if (max_batch_size > 0)
            add_rows(bconfig_int(rows, 1), max_batch_size, specs, ret_count);
    }
    for (size_t i = 0; !batcher && i < USUAL_ROWS; i++)
        add_rows(usual_rows[i], max_batch_size, specs, ret_count);
    add_rows(max_batch_size, max_batch_size, specs, ret_count);
    return NULL;
}

static TRITONSERVER_Error *graph_check_rows(const struct graph_spec *spec, int64_t max_batch_size)
{
    const int64_t least = max_batch_size > 0 ? 1 : 0;
    const int64_t rows[] = {spec->rows, spec->least_rows};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i] < least || rows[i] > max_batch_size)
            return max_batch_size > 0
                       ? berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                                  "graph spec expects 'batch_size' to be >= 1 and <= %" PRId64,
                                  max_batch_size)
                       : berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                                  "graph spec expects 'batch_size' to be 0 if 'max_batch_size' is "
                                  "0");
    if (spec->least_rows > spec->rows)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "graph lower bound spec expects 'batch_size' to be <= graph spec "
                        "'batch_size'");
    return NULL;
}

/* An input of a specification and of its lower bound. */
static TRITONSERVER_Error *check_input(const char *name, yyjson_val *most, yyjson_val *least)
{
    int64_t above[PROFILE_MOST_VALUES], below[PROFILE_MOST_VALUES];
    if (!least)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "graph lower bound spec expects shape for input '%s'", name);
    size_t count = bconfig_shape(yyjson_obj_get(most, "dim"), above, PROFILE_MOST_VALUES);
    size_t found = bconfig_shape(yyjson_obj_get(least, "dim"), below, PROFILE_MOST_VALUES);
    if (count != found)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "graph lower bound spec expects to have %zu dimensions for input '%s', got "
                        "%zu",
                        count, name, found);
    if (count > PROFILE_MOST_VALUES)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "graph spec expects input '%s' to have at most %d dimensions", name,
                        PROFILE_MOST_VALUES);
    for (size_t i = 0; i < count; i++) {
        if (above[i] < 0 || below[i] < 0)
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "graph spec expects input '%s' to have dimension >= 0", name);
        if (below[i] > above[i])
            return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                            "graph lower bound spec expects input '%s' to have dimension <= "
                            "%" PRId64,
                            name, above[i]);
    }
    return NULL;
}

static TRITONSERVER_Error *read_spec(yyjson_val *entry, int64_t max_batch_size,
                                     struct graph_spec *ret)
{
    yyjson_val *bound = yyjson_obj_get(entry, "graph_lower_bound"), *name, *shape;
    size_t index, count;
    *ret = (struct graph_spec){.rows = bconfig_int(yyjson_obj_get(entry, "batch_size"), 0),
                               .inputs = yyjson_obj_get(entry, "input")};
    if (yyjson_obj_size(ret->inputs) == 0)
        ret->inputs = NULL;
    ret->least_rows = bound ? bconfig_int(yyjson_obj_get(bound, "batch_size"), 0) : ret->rows;
    ret->least_inputs = bound ? yyjson_obj_get(bound, "input") : ret->inputs;
    TRITONSERVER_Error *err = graph_check_rows(ret, max_batch_size);
    yyjson_obj_foreach(ret->inputs, index, count, name, shape)
    {
        if (!err)
            err = check_input(yyjson_get_str(name), shape,
                              yyjson_obj_get(ret->least_inputs, yyjson_get_str(name)));
    }
    return err;
}

TRITONSERVER_Error *graph_list(yyjson_val *config, int64_t max_batch_size, struct graph_spec **ret,
                               size_t *ret_count)
{
    yyjson_val *cuda = yyjson_obj_get(yyjson_obj_get(config, "optimization"), "cuda"), *entry;
    yyjson_val *list = yyjson_obj_get(cuda, "graph_spec");
    size_t index, count;
    TRITONSERVER_Error *err = NULL;
    if (yyjson_arr_size(list) == 0)
        return list_usual(config, max_batch_size, ret, ret_count);
    struct graph_spec *specs = calloc(yyjson_arr_size(list), sizeof *specs);
    if (!specs)
        return berr_no_memory();
    yyjson_arr_foreach(list, index, count, entry)
    {
        if (!err)
            err = read_spec(entry, max_batch_size, &specs[index]);
    }
    if (err) {
        free(specs);
        return err;
    }
    *ret = specs;
    *ret_count = yyjson_arr_size(list);
    return NULL;
}

/* One side of a specification for one input: its dimensions, or the values of a shape tensor.
 * shape  as the specification has it; NULL = what the profile is best for */
static TRITONSERVER_Error *fill_given(yyjson_val *shape, int64_t rows,
                                      const struct profile_limits *limits,
                                      const struct trt_tensor *tensor, struct profile_given *ret)
{
    const struct profile_range *best = tensor->is_shape ? &limits->values : &limits->dims;
    const size_t first = rows > 0 ? 1 : 0;
    const size_t room = tensor->is_shape ? PROFILE_MOST_VALUES : PROFILE_MOST_DIMS;
    int64_t *numbers = tensor->is_shape ? ret->values : ret->dims;
    size_t count = best->count;
    *ret = (struct profile_given){.name = tensor->name};
    if (shape)
        count = first + bconfig_shape(yyjson_obj_get(shape, "dim"), numbers + first, room - first);
    else if (count)
        memcpy(numbers, best->best, count * sizeof *numbers);
    if (count > room || (first && count == 0))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "the graph spec of input '%s' has %zu dimensions", tensor->name, count);
    if (first)
        numbers[0] = rows;
    ret->rank = tensor->is_shape ? tensor->rank : count;
    ret->count = tensor->is_shape ? count : 0;
    if (tensor->is_shape)
        ret->dims[0] = (int64_t)count;
    return NULL;
}

/* Bounds are for what lies in the order of its dimensions. */
static TRITONSERVER_Error *check_bounds(const struct profile_given *most,
                                        const struct profile_given *least,
                                        const struct trt_tensor *tensor, int64_t rows)
{
    for (size_t i = rows > 0 ? 1 : 0; !tensor->is_linear && i < most->rank; i++)
        if (least->dims[i] != most->dims[i])
            return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                            "the graph lower bound of input '%s' has smaller dimensions, which is "
                            "not served for a non-linear IO format",
                            tensor->name);
    return NULL;
}

static TRITONSERVER_Error *graph_fill_input(const struct graph_spec *spec,
                                            const struct profile_limits *limits,
                                            const struct trt_tensor *tensor,
                                            struct profile_given *most, struct profile_given *least)
{
    yyjson_val *shape = yyjson_obj_get(spec->inputs, tensor->name);
    if (spec->inputs && !shape)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "the graph spec has no input '%s'",
                        tensor->name);
    TRITONSERVER_Error *err = fill_given(shape, spec->rows, limits, tensor, most);
    if (!err)
        err = fill_given(shape ? yyjson_obj_get(spec->least_inputs, tensor->name) : NULL,
                         spec->least_rows, limits, tensor, least);
    return err ? err : check_bounds(most, least, tensor, spec->rows);
}

TRITONSERVER_Error *graph_init(const struct graph_spec *spec, const struct profile *profile,
                               const struct trt_tensor *tensors, size_t count, const char *instance,
                               struct graph *ret)
{
    size_t input = 0;
    TRITONSERVER_Error *err = NULL;
    *ret = (struct graph){.rows = spec->rows,
                          .most = calloc(2 * count + 1, sizeof *ret->most),
                          .tensors = calloc(count + 1, sizeof *ret->tensors)};
    if (!ret->most || !ret->tensors)
        err = berr_no_memory();
    ret->least = ret->most ? ret->most + count : NULL;
    for (size_t i = 0; i < count && !err; i++) {
        if (!tensors[i].is_input)
            continue;
        err = graph_fill_input(spec, &profile->limits[input], &tensors[i], &ret->most[input],
                               &ret->least[input]);
        input++;
    }
    if (!err)
        err = profile_check(profile, ret->most, input, instance);
    if (err)
        graph_fini(ret, count);
    return err;
}

void graph_fini(struct graph *graph, size_t count)
{
    for (size_t i = 0; graph->tensors && i < count; i++)
        free(graph->tensors[i].host);
    free(graph->tensors);
    free(graph->most);
}

static int compare_numbers(const int64_t *a, const int64_t *b, size_t count)
{
    size_t i = 0;
    while (i < count && a[i] == b[i])
        i++;
    return i == count ? 0 : a[i] < b[i] ? -1 : 1;
}

/* Both are for the same plan. */
static int graph_compare(const struct graph *a, const struct graph *b, size_t inputs)
{
    int order = compare_numbers(&a->rows, &b->rows, 1);
    for (size_t i = 0; i < inputs && !order; i++) {
        const struct profile_given *x = &a->most[i], *y = &b->most[i];
        order = compare_numbers(x->dims, y->dims, x->rank);
        if (!order)
            order = compare_numbers(x->values, y->values, x->count);
    }
    return order;
}

bool graph_same(const struct graph *a, const struct graph *b, size_t inputs)
{
    return graph_compare(a, b, inputs) == 0;
}

static bool lies_between(const int64_t *numbers, const int64_t *least, const int64_t *most,
                         size_t count)
{
    size_t i = 0;
    while (i < count && numbers[i] >= least[i] && numbers[i] <= most[i])
        i++;
    return i == count;
}

static bool graph_covers(const struct graph *graph, const struct profile_given *given,
                         size_t inputs)
{
    bool covers = true;
    for (size_t i = 0; i < inputs && covers; i++) {
        const struct profile_given *most = &graph->most[i], *least = &graph->least[i];
        covers = given[i].rank == most->rank && given[i].count == most->count &&
                 lies_between(given[i].dims, least->dims, most->dims, most->rank) &&
                 lies_between(given[i].values, least->values, most->values, most->count);
    }
    return covers;
}

const struct graph *graph_choose(const struct graph *graphs, size_t graph_count,
                                 const struct profile_given *given, size_t inputs)
{
    const struct graph *found = NULL;
    for (size_t i = 0; i < graph_count; i++)
        if (graph_covers(&graphs[i], given, inputs) &&
            (!found || graph_compare(&graphs[i], found, inputs) < 0))
            found = &graphs[i];
    return found;
}

/* The last dimension that differs; what follows it lies in one piece in both. */
static size_t last_other(const int64_t *small, const int64_t *large, size_t rank)
{
    size_t at = rank;
    while (at > 0 && small[at - 1] == large[at - 1])
        at--;
    return at > 0 ? at - 1 : 0;
}

int64_t graph_block(const int64_t *small, const int64_t *large, size_t rank, int64_t *ret_elements)
{
    const size_t at = last_other(small, large, rank);
    int64_t pieces = 1;
    *ret_elements = 1;
    for (size_t i = 0; i < rank; i++)
        *(i < at ? &pieces : ret_elements) *= small[i];
    return pieces;
}

int64_t graph_offset(const int64_t *small, const int64_t *large, size_t rank, int64_t piece)
{
    const size_t at = last_other(small, large, rank);
    int64_t offset = 0, stride = 1;
    for (size_t i = rank; i > 0; i--) {
        if (i - 1 < at) {
            offset += piece % small[i - 1] * stride;
            piece /= small[i - 1];
        }
        stride *= large[i - 1];
    }
    return offset;
}
