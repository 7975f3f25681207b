#include "step.h"

#include <stdarg.h>
#include <stdio.h>

#include "../../common/berr.h"

TRITONSERVER_Error *step_err(const struct step *step, const char *fmt, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    const struct netdef_op *op = step->op;
    return berr_new(TRITONSERVER_ERROR_UNSUPPORTED, "operator '%s' that computes '%s': %s",
                    op->type, op->output_count ? op->outputs[0] : "", text);
}

TRITONSERVER_Error *step_rank(const struct step *step, size_t input, int least, int *ret_rank)
{
    const struct graph_value *value = step->in[input];
    if (value->rank < 0)
        return step_err(step, "how many dimensions '%s' has is not known", value->blob);
    if (value->rank < least)
        return step_err(step, "'%s' has %d dimensions, at least %d are needed", value->blob,
                        value->rank, least);
    if (value->rank > GRAPH_MAX_RANK)
        return step_err(step, "'%s' has %d dimensions, at most %d are supported", value->blob,
                        value->rank, GRAPH_MAX_RANK);
    *ret_rank = value->rank;
    return NULL;
}

TRITONSERVER_Error *step_axis(const struct step *step, const char *name, int64_t absent, int dims,
                              int64_t *ret_axis)
{
    int64_t axis = netdef_int(step->op, name, absent);
    if (axis < -dims || axis >= dims)
        return step_err(step, "%s is %lld, of %d dimensions", name, (long long)axis, dims);
    *ret_axis = axis < 0 ? axis + dims : axis;
    return NULL;
}

TRITONSERVER_Error *step_kind(const struct step *step, const char *name, enum netdef_kind kind)
{
    static const char *const words[] = {[NETDEF_REAL] = "a floating-point number",
                                        [NETDEF_WHOLE] = "an integer",
                                        [NETDEF_TEXT] = "a string"};
    if (!netdef_has(step->op, name) || netdef_holds(step->op, name, kind))
        return NULL;
    return step_err(step, "the argument '%s' has to be %s", name, words[kind]);
}

TRITONSERVER_Error *step_ints(const struct step *step, const char *name, int64_t *ret_values,
                              size_t *ret_count)
{
    size_t count = netdef_ints(step->op, name, ret_values, GRAPH_MAX_INTS);
    if (count > GRAPH_MAX_INTS)
        return step_err(step, "%s has %zu values, at most %d are supported", name, count,
                        GRAPH_MAX_INTS);
    *ret_count = count;
    return NULL;
}

TRITONSERVER_Error *step_begin_image(struct step *step, int least, struct step_image *ret_image)
{
    struct step_image image = {.input = step->in[0]->name, .output = step->out[0]->name};
    image.channels_last = netdef_is(step->op, "order", "NHWC", false);
    if (!image.channels_last && !netdef_is(step->op, "order", "NCHW", true))
        return step_err(step, "order is neither NCHW nor NHWC");
    TRITONSERVER_Error *err = step_rank(step, 0, least, &image.rank);
    if (err)
        return err;
    step->out[0]->rank = image.rank;
    image.input = step_image_order(step, &image, image.input);
    if (image.channels_last)
        image.output = graph_name(step->graph);
    *ret_image = image;
    return NULL;
}

const char *step_image_order(struct step *step, const struct step_image *image, const char *input)
{
    int64_t axes[GRAPH_MAX_RANK];
    if (!image->channels_last)
        return input;
    for (int i = 0; i < image->rank; i++)
        axes[i] = i == 0 ? 0 : i == 1 ? image->rank - 1 : i - 1;
    return graph_permute(step->graph, input, axes, (size_t)image->rank, NULL);
}

void step_end_image(struct step *step, const struct step_image *image)
{
    int64_t axes[GRAPH_MAX_RANK];
    if (!image->channels_last)
        return;
    for (int i = 0; i < image->rank; i++)
        axes[i] = i == 0 ? 0 : i == image->rank - 1 ? 1 : i + 1;
    graph_permute(step->graph, image->output, axes, (size_t)image->rank, step->out[0]->name);
}
