/* Rules for inputs and outputs. */
#include "base/map.h"
#include "model/config.h"
#include "model/config_check.h"
#include "model/config_check_priv.h"
#include "model/config_platform.h"
#include "model/shape.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

/* The properties that inputs and outputs share. */
struct io {
    const char *kind; /* "input" or "output" */
    const char *name;
    int data_type;
    const int64_t *dims;
    size_t rank;
    const Inference__ModelTensorReshape *reshape;
    bool shape_tensor;
    bool non_linear;
};

__attribute__((format(printf, 2, 3), cold)) static struct err *
config_check_io_fail(const struct io *io, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct strbuf words = STRBUF_INIT;
    struct err *e = err_vnew(STATUS_INVALID_ARG, fmt, args);
    va_end(args);
    strbuf_printf(&words, "model %s '%s' %s", io->kind, io->name, err_message(e));
    err_free(e);
    e = err_new(STATUS_INVALID_ARG, "%s", strbuf_str(&words));
    strbuf_fini(&words);
    return e;
}

static struct err *check_dims(const struct io *io, const char *what, const int64_t *dims,
                              size_t rank)
{
    if (rank > CONFIG_CHECK_MAX_RANK)
        return config_check_io_fail(io, "%s must be at most %u, got %zu", what,
                                    CONFIG_CHECK_MAX_RANK, rank);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 1 && dims[i] != SHAPE_ANY)
            return config_check_io_fail(
                io, "%s must be integer >= 1, or -1 to indicate a variable-size dimension", what);
    return NULL;
}

/* chunk - the number of elements up to the next variable dimension or the end; moves *at behind
 * it. */
static bool chunk(const int64_t *dims, size_t rank, size_t *at, uint64_t *ret)
{
    size_t from = *at;
    while (*at < rank && dims[*at] != SHAPE_ANY)
        ++*at;
    bool fits = shape_elements(dims + from, *at - from, ret);
    ++*at;
    return fits;
}

static size_t count_any(const int64_t *dims, size_t rank)
{
    size_t n = 0;
    for (size_t i = 0; i < rank; i++)
        n += dims[i] == SHAPE_ANY ? 1 : 0;
    return n;
}

/* check_reshape - dims and reshape must have equally many elements in each chunk between
 * variable dimensions: [2,4,-1,6] fits [8,-1,1,6]. */
static struct err *check_reshape(const struct io *io, int32_t max_batch_size)
{
    static const int64_t scalar[1]; /* of rank 0, used if the message has NULL */
    size_t rank = io->reshape->n_shape;
    const int64_t *shape = rank ? io->reshape->shape : scalar;
    if (rank == 0 && max_batch_size == 0)
        return config_check_io_fail(
            io,
            "cannot have empty reshape for non-batching model as scalar tensors are not supported");
    struct err *e = check_dims(io, "reshape dimensions", shape, rank);
    if (e)
        return e;
    size_t any_dims = count_any(io->dims, io->rank);
    size_t any_shape = count_any(shape, rank);
    if (any_dims != any_shape && any_dims && any_shape)
        return config_check_io_fail(
            io, "has different number of variable-size dimensions for dims and reshape");
    size_t a = 0;
    size_t b = 0;
    for (size_t i = 0; i <= any_dims; i++) {
        uint64_t x;
        uint64_t y;
        bool fits = chunk(io->dims, io->rank, &a, &x);
        fits = chunk(shape, rank, &b, &y) && fits;
        if (!fits)
            return config_check_io_fail(io, "has more elements than an int64 can count");
        if (any_dims != any_shape || x != y)
            return config_check_io_fail(io, "has different size for dims and reshape");
    }
    return NULL;
}

static struct err *check_io_datatype(const struct io *io, const Inference__ModelConfig *p)
{
    if (io->data_type == DATATYPE_INVALID)
        return config_check_io_fail(io, "must specify 'data_type'");
    if (io->data_type < 0 || io->data_type >= DATATYPE_COUNT)
        return config_check_io_fail(io, "has unknown 'data_type' %d", io->data_type);
    const struct config_platform *row = config_platform_find(p->platform);
    if (row && !(row->datatypes >> io->data_type & 1))
        return config_check_io_fail(io, "has data type %s, which platform %s does not support",
                                    datatype_config_name((enum datatype)io->data_type),
                                    p->platform);
    return NULL;
}

static struct err *check_io(const struct io *io, const Inference__ModelConfig *p)
{
    if (!*io->name)
        return err_new(STATUS_INVALID_ARG, "model %s must specify 'name'", io->kind);
    struct err *e = check_io_datatype(io, p);
    if (!e && io->rank == 0)
        e = config_check_io_fail(io, "must specify 'dims'");
    if (!e)
        e = check_dims(io, "dimension", io->dims, io->rank);
    if (!e && io->reshape)
        e = check_reshape(io, p->max_batch_size);
    bool tensorrt = strcmp(p->platform, "tensorrt_plan") == 0;
    if (!e && io->shape_tensor && !tensorrt)
        e = err_new(STATUS_INVALID_ARG, "shape tensors are only supported for TensorRT platform");
    if (!e && io->non_linear && !tensorrt)
        e = err_new(STATUS_INVALID_ARG,
                    "Non-linear IO format is only supported for the TensorRT platform");
    if (!e && io->non_linear && io->rank != 3)
        e = err_new(STATUS_INVALID_ARG, "Non-linear IO format %s requires 3 dims", io->kind);
    return e;
}

static struct err *check_model_input(const Inference__ModelInput *in,
                                     const Inference__ModelConfig *p)
{
    struct io io = {"input",    in->name,    (int)in->data_type,  in->dims,
                    in->n_dims, in->reshape, in->is_shape_tensor, in->is_non_linear_format_io};
    struct err *e = check_io(&io, p);
    int format = (int)in->format;
    if (!e && (format < 0 || format > (int)INFERENCE__MODEL_INPUT__FORMAT__FORMAT_NCHW))
        e = config_check_io_fail(&io, "has unknown 'format' %d", format);
    if (!e && format && in->n_dims != 3)
        e = err_new(STATUS_INVALID_ARG, "model input NHWC/NCHW require 3 dims");
    return e;
}

static struct err *check_model_output(const Inference__ModelOutput *out,
                                      const Inference__ModelConfig *p)
{
    struct io io = {"output",    out->name,    (int)out->data_type,  out->dims,
                    out->n_dims, out->reshape, out->is_shape_tensor, out->is_non_linear_format_io};
    return check_io(&io, p);
}

static struct err *check_sources(const char *kind, const char *kind_name, char *const *sources,
                                 size_t count, const struct map *inputs)
{
    if (!kind_name)
        return err_new(STATUS_INVALID_ARG, "unknown batch %s kind", kind);
    if (count != 1)
        return err_new(STATUS_INVALID_ARG, "batch %s kind '%s' expects 1 source input, got %zu",
                       kind, kind_name, count);
    if (!map_get(inputs, sources[0], strlen(sources[0])))
        return err_new(STATUS_INVALID_ARG, "unknown source input name '%s'", sources[0]);
    return NULL;
}

static const char *enum_name(const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
    return v ? v->name : NULL;
}

static struct err *check_batch_input(const Inference__BatchInput *b, const struct map *inputs)
{
    struct err *e =
        check_sources("input", enum_name(&inference__batch_input__kind__descriptor, (int)b->kind),
                      b->source_input, b->n_source_input, inputs);
    if (!e && b->data_type != INFERENCE__DATA_TYPE__TYPE_INT32 &&
        b->data_type != INFERENCE__DATA_TYPE__TYPE_FP32)
        e = err_new(STATUS_INVALID_ARG, "batch input data type must be TYPE_INT32 or TYPE_FP32");
    return e;
}

static struct err *check_batch_output(const Inference__BatchOutput *b, const struct map *inputs,
                                      const struct map *outputs)
{
    struct err *e =
        check_sources("output", enum_name(&inference__batch_output__kind__descriptor, (int)b->kind),
                      b->source_input, b->n_source_input, inputs);
    struct map seen = MAP_INIT;
    for (size_t i = 0; !e && i < b->n_target_name; i++) {
        const char *name = b->target_name[i];
        if (!map_get(outputs, name, strlen(name)))
            e = err_new(STATUS_INVALID_ARG, "unknown target output name '%s'", name);
        else if (map_put(&seen, name, strlen(name), &seen))
            e = err_new(STATUS_INVALID_ARG, "target output name '%s' can only be specified once",
                        name);
    }
    map_fini(&seen);
    return e;
}

static struct err *check_batch_io(const Inference__ModelConfig *p)
{
    struct map inputs = MAP_INIT;
    struct map outputs = MAP_INIT;
    struct err *e = NULL;
    for (size_t i = 0; i < p->n_input; i++)
        map_put(&inputs, p->input[i]->name, strlen(p->input[i]->name), p->input[i]);
    for (size_t i = 0; i < p->n_output; i++)
        map_put(&outputs, p->output[i]->name, strlen(p->output[i]->name), p->output[i]);
    for (size_t i = 0; !e && i < p->n_batch_input; i++)
        e = check_batch_input(p->batch_input[i], &inputs);
    for (size_t i = 0; !e && i < p->n_batch_output; i++)
        e = check_batch_output(p->batch_output[i], &inputs, &outputs);
    map_fini(&inputs);
    map_fini(&outputs);
    return e;
}

/* behind - append the model's name, as the reference does in these messages. */
static struct err *behind(struct err *e, const char *model)
{
    if (!e)
        return NULL;
    struct err *longer = err_new(err_code(e), "%s for %s", err_message(e), model);
    err_free(e);
    return longer;
}

struct err *config_check_io_rules(const Inference__ModelConfig *p)
{
    struct err *e = NULL;
    bool ensemble =
        p->scheduling_choice_case == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING;
    if (ensemble && (p->n_input == 0 || p->n_output == 0))
        return err_new(STATUS_INVALID_ARG, "must specify one or more '%s's for %s",
                       p->n_input == 0 ? "input" : "output", p->name);
    if (p->n_input > CONFIG_MAX_IO || p->n_output > CONFIG_MAX_IO)
        return err_new(STATUS_INVALID_ARG,
                       "expected at most %u inputs and outputs, got %zu and %zu for %s",
                       CONFIG_MAX_IO, p->n_input, p->n_output, p->name);
    for (size_t i = 0; !e && i < p->n_input; i++)
        e = check_model_input(p->input[i], p);
    for (size_t i = 0; !e && i < p->n_output; i++)
        e = check_model_output(p->output[i], p);
    return behind(e ? e : check_batch_io(p), p->name);
}
