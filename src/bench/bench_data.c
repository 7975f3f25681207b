#include "bench/bench_data.h"

#include "base/mem.h"
#include "codec/base64.h"
#include "codec/json_tensor.h"
#include "model/shape.h"
#include "model/tensor_json.h"
#include "os/files/file.h"

#include <string.h>
#include <yyjson.h>

#define MOST_RANDOM 128u /* integers made up are below this: every type has them */

/* Numbers made up, the same in every run. */
static uint32_t made_up(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static bool names(const char *name, size_t len, const struct bench_input *input)
{
    return strlen(input->name) == len && memcmp(input->name, name, len) == 0;
}

/* An error if it is the name of no input. */
static struct err *check_input_name(const struct bench_options *o, const struct bench_model *m,
                                    const char *name, size_t len)
{
    for (uint32_t i = 0; i < m->input_count; i++)
        if (names(name, len, &m->inputs[i]))
            return NULL;
    return err_new(STATUS_INVALID_ARG, "the model '%s' has no input '%.*s'", o->model, (int)len,
                   name);
}

/* The shape that the command line gives, else that of the model; in front the batch. */
static struct err *bench_data_shape(const struct bench_options *o, const struct bench_model *m,
                                    const struct bench_input *input, struct bench_tensor *t)
{
    bool batches = m->max_batch_size > 0;
    uint32_t from = batches && input->rank ? 1 : 0;
    const int64_t *dims = input->dims + from;
    uint32_t rank = input->rank - from;
    for (uint32_t i = 0; i < o->shape_count; i++) {
        const struct bench_shape *s = &o->shapes[i];
        if (names(s->name, s->name_len, input)) {
            dims = s->dims;
            rank = s->rank;
        }
    }
    t->input = input;
    if (batches)
        t->dims[t->rank++] = o->batch_size;
    for (uint32_t i = 0; i < rank && t->rank < BENCH_MODEL_RANK; i++)
        t->dims[t->rank++] = dims[i];
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0) {
            struct strbuf text = STRBUF_INIT;
            shape_print(&text, dims, rank);
            struct err *e =
                err_new(STATUS_INVALID_ARG,
                        "input '%s' has the shape %s, whose -1 may be any size: choose "
                        "one, for example --shape %s:%s",
                        input->name, strbuf_str(&text), input->name, rank == 1 ? "16" : "1,16");
            strbuf_fini(&text);
            return e;
        }
    if (!shape_elements(t->dims, t->rank, &t->elements) || t->elements > BENCH_DATA_BYTES)
        return err_new(STATUS_INVALID_ARG, "input '%s': at most %zu elements can be sent",
                       input->name, BENCH_DATA_BYTES);
    return NULL;
}

static struct err *bench_data_room(struct bench_tensor *t, uint64_t bytes)
{
    mem_free(t->bytes);
    t->len = (size_t)bytes;
    t->bytes = bytes <= BENCH_DATA_BYTES ? mem_try_alloc(t->len ? t->len : 1, 64) : NULL;
    if (t->bytes)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "input '%s': %llu bytes are too many, at most %zu",
                   t->input->name, (unsigned long long)bytes, BENCH_DATA_BYTES);
}

static struct err *make_strings(const struct bench_options *o, struct bench_tensor *t, bool zero,
                                uint64_t *state)
{
    size_t len = o->string_data ? strlen(o->string_data) : zero ? 0 : o->string_length;
    struct err *e = bench_data_room(t, t->elements * (4 + (uint64_t)len));
    char *at = t->bytes;
    for (uint64_t i = 0; !e && i < t->elements; i++, at += len) {
        uint32_t prefix = (uint32_t)len;
        memcpy(at, &prefix, 4);
        at += 4;
        for (size_t k = 0; k < len; k++)
            at[k] = o->string_data ? o->string_data[k] : (char)('a' + made_up(state) % 26);
    }
    return e;
}

/* A number of the datatype, from 0 to 1 if it is real. */
static void bench_put_number(enum datatype type, uint32_t random, char *to)
{
    float real = (float)(random & 0xffff) / 65536.0f;
    double wide = real;
    uint64_t whole = random % (type == DATATYPE_BOOL ? 2 : MOST_RANDOM);
    uint32_t bits;
    memcpy(&bits, &real, 4);
    uint16_t brain = (uint16_t)(bits >> 16);
    uint16_t half = (uint16_t)(random & 0x3bff); /* positive, below 1 */
    const void *from = &whole;
    if (type == DATATYPE_FP16)
        from = &half;
    else if (type == DATATYPE_BF16)
        from = &brain;
    else if (type == DATATYPE_FP32)
        from = &real;
    else if (type == DATATYPE_FP64)
        from = &wide;
    memcpy(to, from, datatype_bytes(type));
}

static struct err *make_tensor(const struct bench_options *o, struct bench_tensor *t)
{
    uint64_t state = 1;
    bool zero = strcmp(o->input_data, "zero") == 0;
    if (t->input->datatype == DATATYPE_BYTES)
        return make_strings(o, t, zero, &state);
    uint32_t width = datatype_bytes(t->input->datatype);
    struct err *e = bench_data_room(t, t->elements * width);
    if (e)
        return e;
    memset(t->bytes, 0, t->len);
    for (uint64_t i = 0; !zero && i < t->elements; i++)
        bench_put_number(t->input->datatype, made_up(&state), t->bytes + i * width);
    return NULL;
}

/* The file of an input in the directory; the caller frees it (mem_free). The server chooses the
 * name: one that leads elsewhere would send it another file. */
static struct err *file_of(const struct bench_options *o, const struct bench_input *input,
                           char **ret)
{
    if (strchr(input->name, '/') || strcmp(input->name, "..") == 0)
        return err_new(STATUS_INVALID_ARG,
                       "option --input-data: the input '%s' has no name that a file of a directory "
                       "can have: use a JSON file",
                       input->name);
    *ret = file_join(o->input_data, input->name);
    return NULL;
}

/* Whether raw bytes are so many elements. */
static bool holds(enum datatype type, const char *bytes, size_t len, uint64_t elements)
{
    if (type != DATATYPE_BYTES)
        return len == elements * datatype_bytes(type);
    for (uint32_t text; elements; elements--) {
        if (len < sizeof(text))
            return false;
        memcpy(&text, bytes, sizeof(text));
        if (len - sizeof(text) < text)
            return false;
        bytes += sizeof(text) + text;
        len -= sizeof(text) + text;
    }
    return !len;
}

/* Raw bytes, of one element of the batch or of all. */
static struct err *read_tensor(const struct bench_options *o, struct bench_tensor *t)
{
    char *path = NULL, *bytes = NULL;
    size_t len = 0;
    uint64_t one = t->elements / o->batch_size;
    struct err *e = file_of(o, t->input, &path);
    if (!e)
        e = file_read(path, BENCH_DATA_BYTES, &bytes, &len);
    bool all = !e && holds(t->input->datatype, bytes, len, t->elements);
    if (!e && !all && !holds(t->input->datatype, bytes, len, one))
        e = err_new(STATUS_INVALID_ARG,
                    "'%s' has %zu bytes, the input '%s' takes %llu elements of %s, %llu for each "
                    "of the batch",
                    path, len, t->input->name, (unsigned long long)t->elements,
                    datatype_name(t->input->datatype), (unsigned long long)one);
    uint32_t copies = all ? 1 : o->batch_size;
    if (!e)
        e = bench_data_room(t, (uint64_t)copies * len);
    for (uint32_t i = 0; !e && i < copies; i++)
        memcpy(t->bytes + i * len, bytes, len);
    mem_free(bytes);
    mem_free(path);
    return e;
}

/* Whether the directory has a file for the input. */
static bool has_file(const struct bench_options *o, const struct bench_input *input)
{
    char *path = NULL;
    err_free(file_of(o, input, &path));
    bool has = path && file_exists(path);
    mem_free(path);
    return has;
}

/* The value of an input in a step: an array, {"content": array, "shape": array} or {"b64": text}.
 * One element of the batch, which is then repeated. */
static struct err *take_json(const struct bench_options *o, const struct bench_model *m,
                             yyjson_val *value, struct bench_tensor *t)
{
    yyjson_val *content = yyjson_is_obj(value) ? yyjson_obj_get(value, "content") : value;
    yyjson_val *b64 = yyjson_obj_get(yyjson_is_obj(content) ? content : value, "b64");
    uint32_t batch = m->max_batch_size ? o->batch_size : 1;
    uint64_t one = t->elements / batch, bytes = 0;
    struct json_tensor_type type;
    enum json_tensor_result r = JSON_TENSOR_NOT_ARRAY;
    struct err *e = NULL;
    if (b64) {
        size_t len = yyjson_get_len(b64);
        char *raw = mem_try_alloc(base64_room(len), 8);
        size_t got = 0;
        if (raw && yyjson_is_str(b64) &&
            base64_decode(yyjson_get_str(b64), len, BASE64_LINES, raw, &got) &&
            (!datatype_bytes(t->input->datatype) ||
             got == one * datatype_bytes(t->input->datatype)))
            r = JSON_TENSOR_OK;
        e = r == JSON_TENSOR_OK ? bench_data_room(t, got * batch) : NULL;
        if (!e && r == JSON_TENSOR_OK)
            memcpy(t->bytes, raw, bytes = got);
        mem_free(raw);
    } else if (yyjson_is_arr(content) && tensor_json_type(t->input->datatype, &type)) {
        r = type.width ? JSON_TENSOR_OK : json_tensor_bytes(content, &bytes);
        bytes = type.width ? one * type.width : bytes;
        e = r == JSON_TENSOR_OK ? bench_data_room(t, bytes * batch) : NULL;
        if (!e && r == JSON_TENSOR_OK)
            r = json_tensor_read(content, type, one, t->bytes);
    }
    if (!e && r != JSON_TENSOR_OK)
        e = err_new(STATUS_INVALID_ARG,
                    "input '%s': expected %llu elements of %s as an array, or {\"b64\": text}: %s",
                    t->input->name, (unsigned long long)one, datatype_name(t->input->datatype),
                    json_tensor_text(r));
    for (uint32_t i = 1; !e && i < batch; i++)
        memcpy(t->bytes + i * bytes, t->bytes, bytes);
    return e;
}

/* A step may say the shape of an input, as --shape does. */
static struct err *shape_of_json(yyjson_val *value, const struct bench_input *input,
                                 struct bench_options *o)
{
    yyjson_val *shape = yyjson_obj_get(value, "shape"), *dim;
    size_t i, rank;
    if (!shape)
        return NULL;
    struct bench_shape *s = &o->shapes[0];
    o->shape_count = 1;
    *s = (struct bench_shape){.name = input->name, .name_len = strlen(input->name)};
    bool ok = yyjson_is_arr(shape);
    yyjson_arr_foreach(shape, i, rank, dim)
    {
        ok = ok && rank <= BENCH_OPTIONS_RANK && yyjson_is_int(dim) && yyjson_get_sint(dim) >= 0;
        if (ok)
            s->dims[s->rank++] = yyjson_get_sint(dim);
    }
    return ok ? NULL
              : err_new(STATUS_INVALID_ARG,
                        "input '%s': expected \"shape\" as an array of whole numbers of at least "
                        "0, at most %u",
                        input->name, BENCH_OPTIONS_RANK);
}

static struct err *bench_make_step(const struct bench_options *o, const struct bench_model *m,
                                   yyjson_val *values, struct bench_step *s)
{
    bool directory = !values && file_is_dir(o->input_data);
    struct bench_options *own = mem_alloc(sizeof(*own));
    struct err *e = NULL;
    s->tensors = mem_zalloc((m->input_count + 1) * sizeof(*s->tensors));
    for (uint32_t i = 0; !e && i < m->input_count; i++) {
        yyjson_val *value = yyjson_obj_get(values, m->inputs[i].name);
        struct bench_tensor *t = &s->tensors[s->tensor_count];
        if (m->inputs[i].optional && !value && !(directory && has_file(o, &m->inputs[i])))
            continue;
        *own = *o;
        e = shape_of_json(value, &m->inputs[i], own);
        if (!e)
            e = bench_data_shape(own, m, &m->inputs[i], t);
        s->tensor_count++;
        if (!e && values && !value)
            e = err_new(STATUS_INVALID_ARG, "the step has no input '%s'", m->inputs[i].name);
        if (!e)
            e = value       ? take_json(o, m, value, t)
                : directory ? read_tensor(o, t)
                            : make_tensor(o, t);
    }
    mem_free(own);
    return e;
}

/* Each value of a step is of an input; "model" is taken without effect, as by perf_analyzer. */
static struct err *check_step_values(const struct bench_options *o, const struct bench_model *m,
                                     yyjson_val *values)
{
    size_t i, count;
    yyjson_val *name, *value;
    struct err *e = NULL;
    yyjson_obj_foreach(values, i, count, name, value)
    {
        if (!e && !yyjson_equals_str(name, "model"))
            e = check_input_name(o, m, yyjson_get_str(name), yyjson_get_len(name));
    }
    return e;
}

static struct err *add_step(const struct bench_options *o, const struct bench_model *m,
                            yyjson_val *values, struct bench_data *d)
{
    if (d->step_count == BENCH_DATA_STEPS)
        return err_new(STATUS_INVALID_ARG, "more than %u steps", BENCH_DATA_STEPS);
    d->steps = mem_realloc(d->steps, (d->step_count + 1) * sizeof(*d->steps));
    struct bench_step *s = &d->steps[d->step_count++];
    *s = (struct bench_step){0};
    struct err *e = check_step_values(o, m, values);
    return err_wrap(e ? e : bench_make_step(o, m, values, s), "step %u", d->step_count);
}

static struct err *data_add_list(const struct bench_options *o, const struct bench_model *m,
                                 yyjson_val *steps, struct bench_data *d)
{
    yyjson_val *step;
    size_t i, count;
    uint32_t first = d->step_count;
    bool ok = yyjson_arr_size(steps) > 0;
    struct err *e = NULL;
    yyjson_arr_foreach(steps, i, count, step)
    {
        ok = ok && yyjson_is_obj(step);
        if (ok && !e)
            e = add_step(o, m, step, d);
    }
    if (!e && !ok)
        e = err_new(STATUS_INVALID_ARG, "expected {\"data\": [{\"INPUT\": [...]}, ...]}, or a list "
                                        "of such steps for each sequence: [[{...}, ...], ...]");
    d->lists = mem_realloc(d->lists, (d->list_count + 1) * sizeof(*d->lists));
    d->lists[d->list_count++] = (struct bench_list){first, d->step_count - first};
    return e;
}

/* {"data": [step, ...]} or {"data": [[step, ...], ...]} */
static struct err *read_steps(const struct bench_options *o, const struct bench_model *m,
                              yyjson_val *root, struct bench_data *d)
{
    yyjson_val *data = yyjson_obj_get(root, "data"), *each;
    size_t i, count;
    struct err *e = NULL;
    if (!yyjson_is_arr(yyjson_arr_get_first(data)))
        return data_add_list(o, m, data, d);
    yyjson_arr_foreach(data, i, count, each)
    {
        if (!e)
            e = data_add_list(o, m, each, d);
    }
    return e;
}

/* Each --shape is of an input. */
static struct err *check_shapes(const struct bench_options *o, const struct bench_model *m)
{
    struct err *e = NULL;
    for (uint32_t i = 0; !e && i < o->shape_count; i++)
        e = check_input_name(o, m, o->shapes[i].name, o->shapes[i].name_len);
    return err_wrap(e, "option --shape");
}

struct err *bench_data_make(const struct bench_options *o, const struct bench_model *m,
                            struct bench_data *ret)
{
    *ret = (struct bench_data){0};
    if (o->batch_size > (m->max_batch_size ? m->max_batch_size : 1))
        return err_new(STATUS_INVALID_ARG,
                       "option --batch-size: expected at most %u, which is max_batch_size of the "
                       "model '%s', found %u",
                       m->max_batch_size ? m->max_batch_size : 1, o->model, o->batch_size);
    struct err *e = check_shapes(o, m);
    if (e)
        return e;
    if (strcmp(o->input_data, "random") == 0 || strcmp(o->input_data, "zero") == 0 ||
        file_is_dir(o->input_data)) {
        ret->steps = mem_zalloc(sizeof(*ret->steps));
        ret->step_count = 1;
        return bench_make_step(o, m, NULL, ret->steps);
    }
    char *text = NULL;
    size_t len = 0;
    e = file_read(o->input_data, BENCH_DATA_FILE_BYTES, &text, &len);
    if (e)
        return err_wrap(e, "option --input-data: expected random, zero, a file or a directory");
    yyjson_read_err problem;
    yyjson_doc *doc = yyjson_read_opts(text, len, 0, NULL, &problem);
    if (doc)
        e = read_steps(o, m, yyjson_doc_get_root(doc), ret);
    else
        e = err_new(STATUS_INVALID_ARG, "no JSON: %s at byte %zu", problem.msg, problem.pos);
    yyjson_doc_free(doc);
    mem_free(text);
    return err_wrap(e, "'%s'", o->input_data);
}

void bench_data_fini(struct bench_data *d)
{
    for (uint32_t i = 0; i < d->step_count; i++) {
        for (uint32_t k = 0; k < d->steps[i].tensor_count; k++)
            mem_free(d->steps[i].tensors[k].bytes);
        mem_free(d->steps[i].tensors);
    }
    mem_free(d->steps);
    mem_free(d->lists);
}
