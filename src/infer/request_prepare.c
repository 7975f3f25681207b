/* Checks a request against its model's configuration and derives what the scheduler and the
 * backend need. The order of the checks and the messages are the reference's. The reference
 * checks inputs from the last to the first, so every loop over inputs that can return an error
 * does the same. */
#include "infer/request.h"

#include "base/map.h"
#include "infer/on_host.h"
#include "model/config.h"
#include "model/shape.h"

#include <inttypes.h>
#include <string.h>

static bool request_prepare_has_input(const struct request *r, const char *name)
{
    for (uint32_t i = 0; i < r->input_count; i++)
        if (strcmp(r->inputs[i].name, name) == 0)
            return true;
    return false;
}

/* The first of `count` names that occurs twice; NULL if none does. A few names are compared with
 * each other; many go through a map. */
static const char *find_repeat(const char *const *names, uint32_t count)
{
    struct map seen = MAP_INIT;
    const char *repeat = NULL;
    for (uint32_t i = 0; i < count && !repeat; i++) {
        if (count > 16 && map_put(&seen, names[i], strlen(names[i]), &seen))
            repeat = names[i];
        for (uint32_t k = 0; count <= 16 && k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                repeat = names[i];
    }
    map_fini(&seen);
    return repeat;
}

static const char *repeated_input(struct request *r)
{
    const char **names = arena_alloc(&r->arena, r->input_count * sizeof(*names));
    for (uint32_t i = 0; i < r->input_count; i++)
        names[i] = r->inputs[i].name;
    return find_repeat(names, r->input_count);
}

static struct err *check_repeats(struct request *r)
{
    const char *repeat = r->input_count > 1 ? repeated_input(r) : NULL;
    if (repeat)
        return request_error(r, "input '%s' already exists in request", repeat);
    repeat = r->output_count > 1 ? find_repeat(r->outputs, r->output_count) : NULL;
    if (repeat)
        return request_error(r, "output '%s' already exists in request", repeat);
    return NULL;
}

static struct err *prepare_outputs(struct request *r)
{
    const struct model_config *cfg = r->config;
    for (uint32_t i = 0; i < r->output_count; i++)
        if (config_output(cfg, r->outputs[i], strlen(r->outputs[i])) < 0)
            return err_new(STATUS_INVALID_ARG, "unexpected inference output '%s' for model '%s'",
                           r->outputs[i], cfg->name);
    if (r->output_count)
        return NULL;
    r->outputs = arena_alloc(&r->arena, cfg->output_count * sizeof(*r->outputs));
    r->output_count = cfg->output_count;
    r->output_cap = cfg->output_count;
    for (uint32_t i = 0; i < cfg->output_count; i++)
        r->outputs[i] = cfg->outputs[i].name;
    return NULL;
}

static __attribute__((cold)) struct err *wrong_count(const struct request *r)
{
    const struct model_config *cfg = r->config;
    struct strbuf got = STRBUF_INIT;
    struct strbuf missing = STRBUF_INIT;
    struct strbuf expected = STRBUF_INIT;
    for (uint32_t i = r->input_count; i-- > 0;)
        strbuf_printf(&got, "%s'%s'", got.len ? "," : "", r->inputs[i].name);
    for (uint32_t i = 0; i < cfg->input_count; i++)
        if (!cfg->inputs[i].optional && !request_prepare_has_input(r, cfg->inputs[i].name))
            strbuf_printf(&missing, "%s'%s'", missing.len ? "," : "", cfg->inputs[i].name);
    if (cfg->required_inputs == cfg->input_count)
        strbuf_printf(&expected, "expected %" PRIu32 " inputs", cfg->input_count);
    else
        strbuf_printf(&expected, "expected number of inputs between %" PRIu32 " and %" PRIu32,
                      cfg->required_inputs, cfg->input_count);
    /* The reference removes the last character of the list of missing inputs, even if the list
     * is empty. */
    struct err *e = request_error(r,
                                  "%s but got %" PRIu32
                                  " inputs for model '%s'. Got input(s) [%s], but missing required "
                                  "input(s) %s%s]. Please provide all required input(s).",
                                  strbuf_str(&expected), r->input_count, cfg->name,
                                  strbuf_str(&got), missing.len ? "[" : "", strbuf_str(&missing));
    strbuf_fini(&got);
    strbuf_fini(&missing);
    strbuf_fini(&expected);
    return e;
}

/* Compares an input's first dimension with the batch size. *batch is the batch size of the
 * inputs before it; -1 = none yet. */
static struct err *join_batch(const struct request *r, const struct tensor_input *in,
                              int64_t *batch)
{
    const char *model = r->config->name;
    if (in->rank == 0)
        return request_error(r,
                             "input '%s' has no shape but model requires batch dimension for '%s'",
                             in->name, model);
    if (*batch >= 0 && in->shape[0] != *batch)
        return request_error(r, "input '%s' batch size does not match other inputs for '%s'",
                             in->name, model);
    *batch = in->shape[0];
    return *batch >= 0
               ? NULL
               : request_error(r, "input '%s' has a negative batch size for '%s'", in->name, model);
}

/* Finds the configuration of each input, and the batch size. */
static struct err *find_inputs(struct request *r, const struct model_io **ret_ios)
{
    const struct model_config *cfg = r->config;
    int64_t batch = -1;
    for (uint32_t i = r->input_count; i-- > 0;) {
        const char *name = r->inputs[i].name;
        int32_t index = config_input(cfg, name, strlen(name));
        if (index < 0)
            return err_new(STATUS_INVALID_ARG, "unexpected inference input '%s' for model '%s'",
                           name, cfg->name);
        ret_ios[i] = &cfg->inputs[index];
        if (cfg->max_batch_size == 0 || ret_ios[i]->shape_tensor)
            continue;
        struct err *e = join_batch(r, &r->inputs[i], &batch);
        if (e)
            return e;
    }
    if (cfg->max_batch_size == 0)
        return NULL;
    if (batch > cfg->max_batch_size)
        return request_error(r, "inference request batch-size must be <= %" PRId32 " for '%s'",
                             cfg->max_batch_size, cfg->name);
    if (batch == 0)
        return request_error(r, "inference request batch-size must be >= 1 for '%s'", cfg->name);
    r->batch_size = batch < 0 ? 1 : (uint32_t)batch;
    return NULL;
}

static __attribute__((cold)) struct err *request_prepare_wrong_shape(const struct request *r,
                                                                     const struct tensor_input *in,
                                                                     const struct model_io *io,
                                                                     bool batched)
{
    static const char note[] = "NOTE: Setting a non-zero max_batch_size in the model config "
                               "requires a batch dimension to be "
                               "prepended to each input shape. If you want to specify the full "
                               "shape including the batch dim "
                               "in your input dims config, try setting max_batch_size to zero. See "
                               "the model configuration "
                               "docs for more info on max_batch_size.";
    struct strbuf expected = STRBUF_INIT;
    struct strbuf got = STRBUF_INIT;
    strbuf_puts(&expected, r->config->max_batch_size > 0 ? "[-1" : "[");
    for (uint32_t i = 0; i < io->rank; i++)
        strbuf_printf(&expected, "%s%" PRId64, expected.len > 1 ? "," : "", io->dims[i]);
    strbuf_putc(&expected, ']');
    shape_print(&got, in->shape, in->rank);
    bool any = false;
    for (uint32_t i = batched; i < in->rank && in->rank - batched == io->rank; i++)
        any |= in->shape[i] == SHAPE_ANY;
    struct err *e =
        any ? request_error(
                  r,
                  "All input dimensions should be specified for input '%s' for model '%s', got %s",
                  in->name, r->config->name, strbuf_str(&got))
            : request_error(
                  r, "unexpected shape for input '%s' for model '%s'. Expected %s, got %s. %s",
                  in->name, r->config->name, strbuf_str(&expected), strbuf_str(&got),
                  r->config->max_batch_size > 0 ? note : "");
    strbuf_fini(&expected);
    strbuf_fini(&got);
    return e;
}

/* Sets the shape that the backend sees: the request's own shape, or the configured reshape with
 * its variable dimensions filled in. */
static void prepare_model_shape(struct request *r, struct tensor_input *in,
                                const struct model_io *io, bool batched)
{
    in->model_shape = in->shape;
    in->model_rank = in->rank;
    if (!io->has_reshape)
        return;
    int64_t *dims = arena_alloc(&r->arena, (io->reshape_rank + 1u) * sizeof(*dims));
    if (batched)
        dims[0] = in->shape[0];
    shape_reshape(io->dims, io->rank, in->shape + batched, io->reshape, io->reshape_rank,
                  dims + batched);
    in->model_shape = dims;
    in->model_rank = io->reshape_rank + batched;
}

/* Checks length-prefixed strings over all pieces. As in the reference, a length may not cross
 * from one piece into the next. */
static struct err *request_prepare_check_strings(const struct request *r,
                                                 const struct tensor_input *in)
{
    const char *model = r->config->name;
    uint64_t seen = 0;
    uint64_t rest = 0; /* bytes left of the current string */
    for (uint32_t i = 0; i < in->piece_count; i++) {
        const unsigned char *p = in->pieces[i].data;
        uint64_t left = in->pieces[i].size;
        while (left) {
            if (!rest) {
                if (left < 4)
                    return request_error(r,
                                         "incomplete string length indicator for inference input "
                                         "'%s' for model '%s', expecting 4 "
                                         "bytes but only %" PRIu64
                                         " bytes available. Please make sure the string length "
                                         "indicator is in one buffer.",
                                         in->name, model, left);
                uint32_t len;
                memcpy(&len, p, 4);
                p += 4;
                left -= 4;
                rest = len;
                if (++seen > in->elements)
                    return request_error(
                        r,
                        "unexpected number of string elements %" PRIu64
                        " for inference input '%s' for model '%s', expecting %" PRIu64,
                        seen, in->name, model, in->elements);
            }
            uint64_t step = rest < left ? rest : left;
            p += step;
            left -= step;
            rest -= step;
        }
    }
    if (seen != in->elements)
        return request_error(
            r,
            "expected %" PRIu64
            " string elements for inference input '%s' for model '%s', got %" PRIu64,
            in->elements, in->name, model, seen);
    if (rest)
        return request_error(
            r, "the last string of inference input '%s' for model '%s' is %" PRIu64 " bytes short",
            in->name, model, rest);
    return NULL;
}

/* What is checked must be what the backend sees: lengths of strings, and values that a batch is
 * made by, could be others a moment later. They are read once, and checked in the copy. */
static struct err *make_private(struct request *r, struct tensor_input *in)
{
    void *copy;
    struct err *e = request_keep(r, in->byte_size, &copy);
    if (!e)
        e = on_host_copy(in, copy);
    if (e)
        return e;
    struct tensor_piece *piece = arena_alloc(&r->arena, sizeof(*piece));
    *piece = (struct tensor_piece){.data = copy, .size = in->byte_size, .memory = BUF_MEMORY_CPU};
    in->pieces = piece;
    in->piece_count = 1;
    in->shared = false;
    return NULL;
}

/* The inputs of a step are not marked themselves; those with strings were copied for the whole.
 * What lies on a GPU cannot be read where it lies. */
static bool must_be_private(const struct tensor_input *in, const struct model_io *io)
{
    bool is_read = in->datatype == DATATYPE_BYTES || io->shape_tensor;
    return in->byte_size && is_read &&
           ((in->shared && in->datatype == DATATYPE_BYTES) ||
            (in->request->memory_shared && io->shape_tensor) || !on_host_is(in));
}

static struct err *check_size(struct request *r, struct tensor_input *in, const struct model_io *io)
{
    uint64_t bytes;
    if (!shape_elements(in->shape, in->rank, &in->elements) ||
        __builtin_mul_overflow(in->elements, (uint64_t)datatype_bytes(in->datatype), &bytes) ||
        bytes > INT64_MAX)
        return request_error(
            r, "the shape of input '%s' for model '%s' has more elements than can be counted",
            in->name, r->config->name);
    struct err *e = must_be_private(in, io) ? make_private(r, in) : NULL;
    if (e || io->non_linear)
        return e;
    if (in->datatype == DATATYPE_BYTES)
        return request_prepare_check_strings(r, in);
    if (in->byte_size != bytes)
        return request_error(
            r,
            "input byte size mismatch for input '%s' for model '%s'. Expected %" PRIu64
            ", got %" PRIu64,
            in->name, r->config->name, bytes, in->byte_size);
    return NULL;
}

static struct err *prepare_input(struct request *r, struct tensor_input *in,
                                 const struct model_io *io)
{
    if (in->datatype != io->datatype)
        return request_error(
            r, "inference input '%s' data-type is '%s', but model '%s' expects '%s'", in->name,
            datatype_name(in->datatype), r->config->name, datatype_name(io->datatype));
    bool batched = r->config->max_batch_size > 0 && !io->shape_tensor;
    if (!shape_fits(io->dims, io->rank, in->shape + batched, in->rank - batched))
        return request_prepare_wrong_shape(r, in, io, batched);
    prepare_model_shape(r, in, io, batched);
    in->ragged_ok = io->ragged;
    return check_size(r, in, io);
}

struct err *request_prepare(struct request *r)
{
    const struct model_config *cfg = r->config;
    struct err *e = check_repeats(r);
    if (e)
        return e;
    if (r->input_count > cfg->input_count || r->input_count < cfg->required_inputs) {
        e = r->output_count ? prepare_outputs(r) : NULL;
        return e ? e : wrong_count(r);
    }
    e = prepare_outputs(r);
    if (e)
        return e;
    const struct model_io **ios =
        arena_alloc(&r->arena, r->input_count * sizeof(struct model_io *));
    e = find_inputs(r, ios);
    for (uint32_t i = r->input_count; !e && i-- > 0;)
        e = prepare_input(r, &r->inputs[i], ios[i]);
    return e;
}
