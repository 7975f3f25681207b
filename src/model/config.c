#include "model/config.h"

#include "base/map.h"
#include "base/mem.h"
#include "codec/pb_field.h"
#include "codec/pb_json.h"
#include "codec/pb_json_read.h"
#include "codec/pb_text.h"
#include "model/config_openai.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

/* The most memory of a message: normal ones need a few times the size of their text; repeated
 * "input{}" would need over ten times. */
#define MESSAGE_MAX_BYTES (CONFIG_MAX_BYTES * 8)

/* If there are more names, lookup uses a map. */
#define LINEAR_NAMES 8u

struct config_names {
    struct map inputs; /* name -> struct model_io; empty when few */
    struct map outputs;
};

Inference__ModelConfig *config_new_proto(void)
{
    Inference__ModelConfig *proto = mem_alloc(sizeof(*proto));
    inference__model_config__init(proto);
    return proto;
}

void config_free_proto(Inference__ModelConfig *proto)
{
    if (proto)
        pb_field_free_message(&proto->base);
}

Inference__ModelConfig *config_copy_proto(const Inference__ModelConfig *proto)
{
    return (Inference__ModelConfig *)pb_field_copy_message(&proto->base);
}

static struct err *too_long(const char *what, size_t len)
{
    if (len <= CONFIG_MAX_BYTES)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "%s: expected at most %zu bytes, found %zu", what,
                   CONFIG_MAX_BYTES, len);
}

struct err *config_parse_text(const char *text, size_t len, const char *file,
                              Inference__ModelConfig **ret)
{
    ProtobufCMessage *msg = NULL;
    struct err *e = too_long(file, len);
    if (!e)
        e = pb_text_read(&inference__model_config__descriptor, text, len, file, MESSAGE_MAX_BYTES,
                         &msg);
    if (!e)
        *ret = (Inference__ModelConfig *)msg;
    return e;
}

struct err *config_parse_json(const char *text, size_t len, Inference__ModelConfig **ret)
{
    ProtobufCMessage *msg = NULL;
    struct err *e = too_long("model configuration", len);
    if (!e)
        e = pb_json_read_message(&inference__model_config__descriptor, text, len,
                                 "model configuration", MESSAGE_MAX_BYTES, &msg);
    if (!e)
        *ret = (Inference__ModelConfig *)msg;
    return e;
}

char *config_print_json(const Inference__ModelConfig *proto, size_t *ret_len)
{
    struct strbuf out = STRBUF_INIT;
    pb_json_print(&proto->base, (struct pb_json_style){.plain_int64 = true, .defaults = true},
                  &out);
    if (ret_len)
        *ret_len = out.len;
    return strbuf_take(&out);
}

static void set_reshape(struct model_io *io, const Inference__ModelTensorReshape *reshape)
{
    if (!reshape)
        return;
    io->has_reshape = true;
    io->reshape = reshape->shape;
    io->reshape_rank = (uint32_t)reshape->n_shape;
}

static struct model_io config_input_of(const Inference__ModelInput *in)
{
    struct model_io io = {
        .name = in->name,
        .name_len = strlen(in->name),
        .datatype = (unsigned)in->data_type < DATATYPE_COUNT ? (enum datatype)in->data_type
                                                             : DATATYPE_INVALID,
        .dims = in->dims,
        .rank = (uint32_t)in->n_dims,
        .optional = in->optional,
        .ragged = in->allow_ragged_batch,
        .shape_tensor = in->is_shape_tensor,
        .non_linear = in->is_non_linear_format_io,
        .label_filename = "",
    };
    set_reshape(&io, in->reshape);
    return io;
}

static struct model_io output_of(const Inference__ModelOutput *out)
{
    struct model_io io = {
        .name = out->name,
        .name_len = strlen(out->name),
        .datatype = (unsigned)out->data_type < DATATYPE_COUNT ? (enum datatype)out->data_type
                                                              : DATATYPE_INVALID,
        .dims = out->dims,
        .rank = (uint32_t)out->n_dims,
        .shape_tensor = out->is_shape_tensor,
        .non_linear = out->is_non_linear_format_io,
        .label_filename = out->label_filename,
    };
    set_reshape(&io, out->reshape);
    return io;
}

static enum config_scheduler scheduler_of(const Inference__ModelConfig *proto)
{
    switch ((int)proto->scheduling_choice_case) {
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_DYNAMIC_BATCHING:
        return CONFIG_SCHEDULER_DYNAMIC;
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING:
        return CONFIG_SCHEDULER_SEQUENCE;
    case INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_ENSEMBLE_SCHEDULING:
        return CONFIG_SCHEDULER_ENSEMBLE;
    default:
        return CONFIG_SCHEDULER_DEFAULT;
    }
}

/* index_names - fill the map, and find a name that occurs twice. */
static struct err *index_names(struct map *map, struct model_io *ios, uint32_t count,
                               const char *model, const char *kind)
{
    for (uint32_t i = 0; i < count; i++)
        if (map_put(map, ios[i].name, ios[i].name_len, &ios[i]))
            return err_new(STATUS_INVALID_ARG,
                           "%s: expected different names of %ss, found '%s' twice", model, kind,
                           ios[i].name);
    if (count <= LINEAR_NAMES)
        map_fini(map);
    return NULL;
}

static struct err *check_counts(const Inference__ModelConfig *proto)
{
    if (proto->n_input > CONFIG_MAX_IO || proto->n_output > CONFIG_MAX_IO)
        return err_new(STATUS_INVALID_ARG,
                       "%s: expected at most %u inputs and outputs, found %zu and %zu", proto->name,
                       CONFIG_MAX_IO, proto->n_input, proto->n_output);
    return NULL;
}

struct err *config_compile(Inference__ModelConfig **proto, struct model_config **ret)
{
    const Inference__ModelConfig *p = *proto;
    struct err *e = check_counts(p);
    if (e)
        return e;
    struct model_config *cfg = MEM_NEW(struct model_config);
    atomic_init(&cfg->refs, 1);
    cfg->name = p->name;
    cfg->platform = p->platform;
    cfg->backend = p->backend;
    cfg->max_batch_size = p->max_batch_size;
    cfg->decoupled = p->model_transaction_policy && p->model_transaction_policy->decoupled;
    cfg->response_cache = p->response_cache && p->response_cache->enable;
    cfg->scheduler = scheduler_of(p);
    cfg->input_count = (uint32_t)p->n_input;
    cfg->output_count = (uint32_t)p->n_output;
    cfg->inputs = mem_alloc(p->n_input * sizeof(struct model_io));
    cfg->outputs = mem_alloc(p->n_output * sizeof(struct model_io));
    cfg->names = MEM_NEW(struct config_names);
    for (uint32_t i = 0; i < cfg->input_count; i++) {
        cfg->inputs[i] = config_input_of(p->input[i]);
        cfg->required_inputs += cfg->inputs[i].optional ? 0 : 1;
    }
    for (uint32_t i = 0; i < cfg->output_count; i++)
        cfg->outputs[i] = output_of(p->output[i]);
    e = index_names(&cfg->names->inputs, cfg->inputs, cfg->input_count, p->name, "input");
    if (!e)
        e = index_names(&cfg->names->outputs, cfg->outputs, cfg->output_count, p->name, "output");
    cfg->proto = p;
    if (!e)
        e = config_openai_read(cfg, &cfg->openai);
    if (e) {
        cfg->proto = NULL;
        config_unref(cfg);
        return e;
    }
    *proto = NULL;
    *ret = cfg;
    return NULL;
}

static void config_text_free(struct buf *text)
{
    mem_free(text->data);
    mem_free(text);
}

static struct buf *config_text_new(const Inference__ModelConfig *proto)
{
    size_t len;
    char *json = config_print_json(proto, &len);
    struct buf *text = MEM_NEW(struct buf);
    buf_init(text, json, len, config_text_free);
    return text;
}

struct buf *config_text(struct model_config *cfg)
{
    struct buf *text = atomic_load_explicit(&cfg->text, memory_order_acquire);
    if (!text) {
        struct buf *mine = config_text_new(cfg->proto);
        /* Another thread may have been faster. Acquire, because its text is read then. */
        if (atomic_compare_exchange_strong_explicit(&cfg->text, &text, mine, memory_order_acq_rel,
                                                    memory_order_acquire))
            text = mine;
        else
            buf_unref(mine);
    }
    return buf_ref(text);
}

struct model_config *config_ref(struct model_config *cfg)
{
    /* The caller already holds a reference, so no order is needed. */
    atomic_fetch_add_explicit(&cfg->refs, 1, memory_order_relaxed);
    return cfg;
}

void config_unref(struct model_config *cfg)
{
    /* Release: the use by others comes before the free. Acquire: the thread that frees sees it. */
    if (!cfg || atomic_fetch_sub_explicit(&cfg->refs, 1, memory_order_acq_rel) > 1)
        return;
    buf_unref(atomic_load_explicit(&cfg->text, memory_order_relaxed));
    map_fini(&cfg->names->inputs);
    map_fini(&cfg->names->outputs);
    mem_free(cfg->names);
    config_openai_free(cfg->openai);
    mem_free(cfg->inputs);
    mem_free(cfg->outputs);
    config_free_proto((Inference__ModelConfig *)(uintptr_t)cfg->proto);
    mem_free(cfg);
}

static int32_t config_find(const struct map *map, const struct model_io *ios, uint32_t count,
                           const char *name, size_t len)
{
    if (map->count) {
        const struct model_io *io = map_get(map, name, len);
        return io ? (int32_t)(io - ios) : -1;
    }
    for (uint32_t i = 0; i < count; i++)
        if (ios[i].name_len == len && memcmp(ios[i].name, name, len) == 0)
            return (int32_t)i;
    return -1;
}

int32_t config_input(const struct model_config *cfg, const char *name, size_t len)
{
    return config_find(&cfg->names->inputs, cfg->inputs, cfg->input_count, name, len);
}

int32_t config_output(const struct model_config *cfg, const char *name, size_t len)
{
    return config_find(&cfg->names->outputs, cfg->outputs, cfg->output_count, name, len);
}
