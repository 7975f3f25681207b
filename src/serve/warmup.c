#include "serve/warmup.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"
#include "model/shape.h"
#include "os/files/beneath.h"
#include "os/files/file.h"
#include "os/pool.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"
#include "serve/reject.h"
#include "serve/scheduler.h"
#include "serve/version.h"

#include <inttypes.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)1 << 31)
/* the length in front of each string; an empty string has no other bytes */
#define LENGTH_BYTES 4u

typedef Inference__ModelWarmup sample_proto;
typedef Inference__ModelWarmup__Input input_proto;

/* The data of one input of a sample. `bytes` points into `buf` or `file`. */
struct warmup_data {
    const void *bytes;
    uint64_t size;
    struct buf *buf; /* NULL if the data lies in `file` */
    char *file;
};

struct warmup_sample {
    const sample_proto *proto;
    struct warmup_data *data; /* one per input */
};

struct warmup {
    struct warmup_sample *samples;
    size_t count;
};

/* One execution of a sample, with all its requests. */
struct run {
    struct mutex lock; /* rank LEAF; guards what follows */
    struct mutex_cond changed;
    size_t pending; /* final responses and releases still to come */
    struct strbuf errors;
};

static struct err *warmup_size(const char *name, const input_proto *in, uint64_t *ret)
{
    enum datatype type = (enum datatype)in->data_type;
    uint64_t each = type == DATATYPE_BYTES ? LENGTH_BYTES : datatype_bytes(type);
    uint64_t elements;
    if (shape_elements(in->dims, in->n_dims, &elements) &&
        !__builtin_mul_overflow(elements, each, ret) && *ret <= INT64_MAX)
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "warmup setting of input '%s' has more elements than can be counted", name);
}

/* Fills the tensor with random bytes; a BOOL tensor gets only 0 and 1. */
static void fill_random(uint8_t *bytes, uint64_t size, enum datatype type)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (uint64_t i = 0; i < size; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = type == DATATYPE_BOOL ? (uint8_t)(state >> 63) : (uint8_t)(state >> 56);
    }
}

static struct err *make_data(const char *name, const input_proto *in, struct warmup_data *ret)
{
    enum datatype type = (enum datatype)in->data_type;
    struct err *e = warmup_size(name, in, &ret->size);
    if (!e)
        e = pool_buf(ret->size ? ret->size : 1, &ret->buf);
    if (e)
        return err_wrap(e, "warmup setting of input '%s'", name);
    ret->bytes = ret->buf->data;
    if (in->input_data_type_case == INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE_RANDOM_DATA &&
        type != DATATYPE_BYTES)
        fill_random(ret->buf->data, ret->size, type);
    else
        memset(ret->buf->data, 0, ret->size);
    return NULL;
}

/* Reads the data from a file. A file longer than the tensor gives its first bytes. Strings are
 * read as they are; the check of the request checks them. */
static struct err *read_data(const char *model_dir, const char *name, const input_proto *in,
                             struct warmup_data *ret)
{
    char *dir = file_join(model_dir, "warmup");
    size_t len = 0;
    struct err *e = warmup_size(name, in, &ret->size);
    if (!e)
        e = beneath_read(dir, in->input_data_file, FILE_MAX_BYTES, &ret->file, &len);
    mem_free(dir);
    if (e)
        return err_wrap(e, "warmup setting of input '%s'", name);
    ret->bytes = ret->file;
    if ((enum datatype)in->data_type == DATATYPE_BYTES)
        ret->size = len;
    if (len >= ret->size)
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "warmup setting expects %" PRIu64
                   " bytes, but the data provided from '%s' for input '%s' only has %zu bytes",
                   ret->size, in->input_data_file, name, len);
}

/* Makes the data of one sample; warmup_free_data frees them, after an error too. */
static struct err *fill_sample(const char *model_dir, const sample_proto *proto,
                               struct warmup_sample *s)
{
    struct err *e = NULL;
    s->proto = proto;
    s->data = mem_zalloc((s->proto->n_inputs + 1) * sizeof(*s->data));
    for (size_t i = 0; !e && i < s->proto->n_inputs; i++) {
        const char *name = s->proto->inputs[i]->key;
        const input_proto *in = s->proto->inputs[i]->value;
        if (in->input_data_type_case ==
            INFERENCE__MODEL_WARMUP__INPUT__INPUT_DATA_TYPE_INPUT_DATA_FILE)
            e = read_data(model_dir, name, in, &s->data[i]);
        else
            e = make_data(name, in, &s->data[i]);
    }
    return err_wrap(e, "warmup sample '%s'", proto->name);
}

static void warmup_free_data(const struct warmup_sample *s)
{
    for (size_t i = 0; s->data && i < s->proto->n_inputs; i++) {
        buf_unref(s->data[i].buf);
        mem_free(s->data[i].file);
    }
    mem_free(s->data);
}

struct err *warmup_new(const struct serve_version *v, struct warmup **ret)
{
    const Inference__ModelConfig *proto = v->config->proto;
    *ret = NULL;
    if (!proto->n_model_warmup)
        return NULL;
    struct warmup *w = MEM_NEW(struct warmup);
    w->samples = mem_zalloc(proto->n_model_warmup * sizeof(*w->samples));
    struct err *e = NULL;
    for (size_t i = 0; !e && i < proto->n_model_warmup; i++)
        e = fill_sample(v->model->dir, proto->model_warmup[i], &w->samples[w->count++]);
    if (e) {
        warmup_free(w);
        return e;
    }
    *ret = w;
    return NULL;
}

void warmup_free(struct warmup *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->count; i++)
        warmup_free_data(&w->samples[i]);
    mem_free(w->samples);
    mem_free(w);
}

static void one_less(struct run *run, const struct err *error)
{
    mutex_lock(&run->lock);
    if (error)
        strbuf_printf(&run->errors, "%s; ", err_message(error));
    else
        run->pending--;
    mutex_cond_signal(&run->changed);
    mutex_unlock(&run->lock);
}

static void warmup_respond(struct response *r, void *owner)
{
    bool final = r->flags & RESPONSE_FINAL;
    if (r->error)
        one_less(owner, r->error);
    response_free(r);
    if (final)
        one_less(owner, NULL);
}

static void warmup_released(struct request *r, void *owner)
{
    (void)r;
    one_less(owner, NULL);
}

/* True for control tensors of a sequence model. The configuration does not list them as inputs,
 * so they are not checked as inputs. */
static bool is_control(const struct model_config *config, const char *name)
{
    return config->scheduler == CONFIG_SCHEDULER_SEQUENCE &&
           config_input(config, name, strlen(name)) < 0;
}

static void warmup_add_input(struct request *r, const char *name, const input_proto *in,
                             const struct warmup_data *data)
{
    size_t batched = r->config->max_batch_size > 0;
    int64_t *shape = arena_alloc(&r->arena, (in->n_dims + 1) * sizeof(*shape));
    shape[0] = 1;
    if (in->n_dims)
        memcpy(shape + batched, in->dims, in->n_dims * sizeof(*shape));
    struct tensor_piece piece = {.data = data->bytes, .size = data->size};
    struct tensor_input *added =
        request_add_input(r, name, strlen(name), (enum datatype)in->data_type, shape,
                          (uint32_t)(in->n_dims + batched), &piece, 1);
    if (!added || !is_control(r->config, name))
        return;
    added->model_shape = added->shape;
    added->model_rank = added->rank;
    shape_elements(added->shape, added->rank, &added->elements);
}

static void warmup_add_inputs(struct request *r, const struct warmup_sample *s, bool controls)
{
    for (size_t i = 0; i < s->proto->n_inputs; i++)
        if (is_control(r->config, s->proto->inputs[i]->key) == controls)
            warmup_add_input(r, s->proto->inputs[i]->key, s->proto->inputs[i]->value, &s->data[i]);
}

static struct err *warmup_prepare(struct request *r, const struct warmup_sample *s)
{
    warmup_add_inputs(r, s, false);
    struct err *e = request_prepare(r);
    if (!e)
        warmup_add_inputs(r, s, true);
    return e;
}

static void nothing_pinned(struct request_target *target)
{
    (void)target;
}

struct err *warmup_check(const struct model_config *config, const char *model_dir, size_t sample,
                         bool complete)
{
    struct request_target target = {.config = config, .unpin = nothing_pinned};
    struct warmup_sample s = {0};
    struct err *e = fill_sample(model_dir, config->proto->model_warmup[sample], &s);
    if (!e && complete) {
        struct request *r = request_new(&target, NULL, warmup_respond, NULL);
        e = err_wrap(warmup_prepare(r, &s), "warmup sample '%s'", s.proto->name);
        request_unref(r);
    }
    warmup_free_data(&s);
    return e;
}

/* Makes one request. A sample with a batch size makes that many requests of one row each. */
static struct err *warmup_make_request(const struct warmup_sample *s, struct serve_version *v,
                                       struct run *run, struct request **ret)
{
    version_pin(v);
    struct request *r = request_new(&v->target, NULL, warmup_respond, run);
    struct err *e = warmup_prepare(r, s);
    if (!e && v->scheduler->ops.sample)
        e = v->scheduler->ops.sample(v->scheduler, r);
    if (e) {
        request_unref(r);
        return e;
    }
    r->released = warmup_released;
    r->times.start = r->times.queue_start = clock_now_ns();
    atomic_store_explicit(&r->first_measured, true, memory_order_relaxed);
    *ret = r;
    return NULL;
}

static void warmup_execute(struct plugin_instance *i, struct request **requests, size_t count)
{
    struct err *e = instance_execute(i, requests, count);
    for (size_t k = 0; e && k < count; k++)
        if (requests[k])
            reject_request(requests[k], STATS_BACKEND, err_copy(e));
    err_free(e);
}

static struct err *warmup_wait_for(struct run *run, const char *sample)
{
    mutex_lock(&run->lock);
    while (run->pending)
        mutex_cond_wait(&run->changed, &run->lock);
    mutex_unlock(&run->lock);
    if (!run->errors.len)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "failed to run warmup sample '%s': %s", sample,
                   strbuf_str(&run->errors));
}

/* Runs one iteration of one sample. */
static struct err *run_sample(const struct warmup_sample *s, struct serve_version *v,
                              struct plugin_instance *i)
{
    size_t count = s->proto->batch_size;
    struct request **requests = mem_alloc(count * sizeof(struct request *));
    struct run run = {.lock = MUTEX_INIT(MUTEX_RANK_LEAF), .errors = STRBUF_INIT};
    mutex_cond_init(&run.changed);
    struct err *e = NULL;
    size_t made = 0;
    while (!e && made < count) {
        e = warmup_make_request(s, v, &run, &requests[made]);
        made += !e;
    }
    if (e) {
        while (made)
            request_unref(requests[--made]);
    } else {
        run.pending = 2 * count;
        warmup_execute(i, requests, count);
        e = warmup_wait_for(&run, s->proto->name);
    }
    strbuf_fini(&run.errors);
    mutex_cond_fini(&run.changed);
    mutex_fini(&run.lock);
    mem_free(requests);
    return e;
}

struct err *warmup_run(const struct warmup *w, struct serve_version *v, struct plugin_instance *i)
{
    struct err *e = NULL;
    for (size_t s = 0; w && !e && s < w->count; s++) {
        const sample_proto *p = w->samples[s].proto;
        for (uint32_t n = 1; !e && n <= (p->count ? p->count : 1); n++) {
            LOG_VERBOSE(
                1, "model '%s' instance %s is running warmup sample '%s' for iteration %" PRIu32,
                v->name, i->name, p->name, n);
            e = run_sample(&w->samples[s], v, i);
        }
    }
    return e;
}
