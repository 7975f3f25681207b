#include "sequences/sequence_state.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/state.h"
#include "model/config.h"
#include "model/shape.h"
#include "os/files/beneath.h"
#include "os/files/file.h"
#include "proto/model_config.pb-c.h"

#include <inttypes.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)1 << 31)
/* the length in front of each string; an empty string has no other bytes */
#define LENGTH_BYTES 4u

typedef Inference__ModelSequenceBatching__State state_proto;
typedef Inference__ModelSequenceBatching__InitialState initial_proto;

#define ZERO_DATA INFERENCE__MODEL_SEQUENCE_BATCHING__INITIAL_STATE__STATE_DATA_ZERO_DATA
#define DATA_FILE INFERENCE__MODEL_SEQUENCE_BATCHING__INITIAL_STATE__STATE_DATA_DATA_FILE

/* -- checking the configuration -- */

static struct err *check_growable(const state_proto *s)
{
    if (!s->use_growable_memory)
        return NULL;
    if (!s->use_same_buffer_for_input_output)
        return err_new(STATUS_INVALID_ARG,
                       "In order to 'use_growable_memory', you must also enable "
                       "'use_single_buffer' for state input name '%s'.",
                       s->input_name);
    return err_new(STATUS_INVALID_ARG,
                   "'use_growable_memory' can only work with KIND_GPU model instances right now. "
                   "Please either change the instance type to KIND_GPU or set "
                   "'use_growable_memory' to false for state input '%s'.",
                   s->input_name);
}

static struct err *check_initial_dims(const state_proto *s, const initial_proto *init)
{
    if (init->n_dims != s->n_dims)
        return err_new(STATUS_INVALID_ARG,
                       "Number of dimensions in 'initial_state' doesn't match the size of 'state' "
                       "dimensions for state input '%s'. %zu != %zu",
                       s->input_name, init->n_dims, s->n_dims);
    for (size_t i = 0; i < init->n_dims; i++) {
        if (init->dims[i] == SHAPE_ANY)
            return err_new(STATUS_INVALID_ARG,
                           "'initial_state' field for state input name '%s' contains variable "
                           "dimensions.",
                           s->input_name);
        if (s->dims[i] != SHAPE_ANY && s->dims[i] != init->dims[i])
            return err_new(STATUS_INVALID_ARG,
                           "'initial_state' dim for input name '%s' doesn't match 'state' dim "
                           "description. %" PRId64 " != %" PRId64,
                           s->input_name, init->dims[i], s->dims[i]);
    }
    return NULL;
}

/* True if an earlier state has an initial value for the same input. */
static bool is_begun(const Inference__ModelSequenceBatching *b, const state_proto *s)
{
    for (size_t i = 0; b->state[i] != s; i++)
        if (b->state[i]->n_initial_state && strcmp(b->state[i]->input_name, s->input_name) == 0)
            return true;
    return false;
}

static struct err *check_initial(const Inference__ModelSequenceBatching *b, const state_proto *s,
                                 const initial_proto *init)
{
    if (init->data_type != s->data_type)
        return err_new(STATUS_INVALID_ARG,
                       "The data type used for 'initial_state' field of state '%s' does not match "
                       "the state data type.",
                       s->input_name);
    if (!*init->name)
        return err_new(STATUS_INVALID_ARG,
                       "Field 'name' must be set when using initial_state for state input '%s'.",
                       s->input_name);
    if (is_begun(b, s))
        return err_new(STATUS_INVALID_ARG, "State input name '%s' specified more than once.",
                       s->input_name);
    struct err *e = check_initial_dims(s, init);
    if (e)
        return e;
    if (init->state_data_case != ZERO_DATA && init->state_data_case != DATA_FILE)
        return err_new(STATUS_INVALID_ARG,
                       "initial_state setting expects state'%s' to have state_data set",
                       s->input_name);
    return NULL;
}

static struct err *check_declared_state(const Inference__ModelSequenceBatching *b,
                                        const state_proto *s)
{
    if (s->n_initial_state > 1)
        return err_new(STATUS_INVALID_ARG,
                       "initial_state field for state input '%s' must contain exactly one or zero "
                       "element. Found '%zu' elements.",
                       s->input_name, s->n_initial_state);
    struct err *e = s->n_initial_state ? check_initial(b, s, s->initial_state[0]) : NULL;
    return e ? e : check_growable(s);
}

/* -- initial values -- */

static struct err *impossible(const char *name, const int64_t *dims, size_t rank)
{
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0) {
            struct strbuf text = STRBUF_INIT;
            shape_print(&text, dims, rank);
            struct err *e =
                err_new(STATUS_INVALID_ARG, "tensor '%s' contains an invalid dimension %s", name,
                        strbuf_str(&text));
            strbuf_fini(&text);
            return e;
        }
    return err_new(STATUS_INVALID_ARG, "byte size for tensor '%s' exceeds maximum size of %" PRId64,
                   name, INT64_MAX);
}

static struct err *sequence_state_size(const char *name, enum datatype type, const int64_t *dims,
                                       size_t rank, uint64_t *ret)
{
    uint64_t each = type == DATATYPE_BYTES ? LENGTH_BYTES : datatype_bytes(type);
    uint64_t elements;
    if (!each)
        return err_new(STATUS_INVALID_ARG, "state '%s' needs a data_type", name);
    if (shape_elements(dims, rank, &elements) && !__builtin_mul_overflow(elements, each, ret) &&
        *ret <= INT64_MAX)
        return NULL;
    return impossible(name, dims, rank);
}

/* Reads an initial value. A file that is too long gives its first bytes. Strings are not
 * checked. */
static struct err *from_file(const char *name, const initial_proto *init, const char *model_dir,
                             uint64_t *size, struct buf **ret)
{
    char *dir = file_join(model_dir, "initial_state");
    char *bytes = NULL;
    size_t len = 0;
    struct err *e = beneath_read(dir, init->data_file, FILE_MAX_BYTES, &bytes, &len);
    mem_free(dir);
    if (e)
        return err_wrap(e, "initial_state of state '%s'", name);
    if ((enum datatype)init->data_type == DATATYPE_BYTES)
        *size = len;
    if (len < *size)
        e = err_new(STATUS_INVALID_ARG,
                    "initial_state setting expects %" PRIu64
                    " bytes, but the data provided from %s only has %zu bytes.",
                    *size, init->data_file, len);
    if (!e)
        e = state_memory(name, *size, ret);
    if (!e && *size)
        memcpy((*ret)->data, bytes, *size);
    mem_free(bytes);
    return e;
}

/* Makes the initial value of a state. Without an initial_state, a variable dimension starts as
 * 1. */
static struct err *make_initial(const state_proto *s, const char *model_dir, size_t batched,
                                struct state_value **ret)
{
    const initial_proto *init = s->n_initial_state ? s->initial_state[0] : NULL;
    const int64_t *given = init ? init->dims : s->dims;
    int64_t *shape = mem_alloc((s->n_dims + 1) * sizeof(*shape));
    shape[0] = 1;
    for (size_t i = 0; i < s->n_dims; i++)
        shape[i + batched] = !init && given[i] == SHAPE_ANY ? 1 : given[i];
    uint64_t size = 0;
    struct buf *data = NULL;
    enum datatype type = (enum datatype)s->data_type;
    struct err *e = sequence_state_size(s->input_name, type, shape + batched, s->n_dims, &size);
    if (!e)
        e = init && init->state_data_case == DATA_FILE
                ? from_file(s->input_name, init, model_dir, &size, &data)
                : state_zeros(s->input_name, size, &data);
    if (!e)
        e = state_value_new(s->input_name, type, shape, (uint32_t)(s->n_dims + batched), data, size,
                            ret);
    mem_free(shape);
    return e;
}

/* -- the plan -- */

/* True if an earlier state names the same tensor; then this one is ignored. */
static bool is_repeated(const struct state_plan *p, const state_proto *s)
{
    for (uint32_t i = 0; i < p->count; i++) {
        bool input = strcmp(p->specs[i].input_name, s->input_name) == 0;
        if (!input && strcmp(p->specs[i].output_name, s->output_name) != 0)
            continue;
        LOG_WARN("Detected duplicate '%s' in the state configuration: '%s'. This state "
                 "configuration will be ignored.",
                 input ? "input_name" : "output_name", input ? s->input_name : s->output_name);
        return true;
    }
    return false;
}

static struct err *sequence_state_add(struct state_plan *p, const struct model_config *config,
                                      const state_proto *s, const char *model_dir)
{
    struct err *e = check_declared_state(config->proto->sequence_batching, s);
    if (e || is_repeated(p, s))
        return e;
    struct state_value *initial;
    e = make_initial(s, model_dir, p->batched, &initial);
    if (e)
        return e;
    for (size_t i = 0; i < s->n_dims; i++)
        p->variable = p->variable || s->dims[i] == SHAPE_ANY;
    p->specs[p->count++] = (struct state_spec){
        .input_name = s->input_name,
        .output_name = s->output_name,
        .in_place = s->use_same_buffer_for_input_output,
        .is_input = config_input(config, s->input_name, strlen(s->input_name)) >= 0,
        .initial = initial,
    };
    return NULL;
}

struct err *sequence_state_plan(const struct model_config *config, const char *model_dir,
                                struct state_plan **ret)
{
    const Inference__ModelSequenceBatching *b = config->proto->sequence_batching;
    *ret = NULL;
    if (!b->n_state)
        return NULL;
    if (b->n_state > STATE_MAX_COUNT)
        return err_new(STATUS_INVALID_ARG, "expected at most %u states, found %zu", STATE_MAX_COUNT,
                       b->n_state);
    struct state_plan *p = state_plan_new((uint32_t)b->n_state);
    p->batched = config->max_batch_size > 0;
    struct err *e = NULL;
    for (size_t i = 0; !e && i < b->n_state; i++)
        e = sequence_state_add(p, config, b->state[i], model_dir);
    if (e) {
        state_plan_free(p);
        return e;
    }
    *ret = p;
    return NULL;
}
