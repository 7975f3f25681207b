#include "bench/bench_model.h"

#include "base/mem.h"
#include "bench/bench_wire.h"

#include <errno.h>
#include <proto/grpc_service.pb-c.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static struct err *bench_model_strange(const char *what)
{
    return err_new(STATUS_INTERNAL, "the server's answer about the model's %s cannot be read",
                   what);
}

/* Servers read names in paths as they are sent: only what a segment cannot hold is encoded. */
static void put_segment(struct strbuf *to, const char *name)
{
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (c <= ' ' || c >= 0x7f || strchr("/?#", c))
            strbuf_printf(to, "%%%02X", c);
        else
            strbuf_putc(to, *name);
    }
}

void bench_model_path(const struct bench_options *o, struct strbuf *to)
{
    strbuf_puts(to, "/v2/models/");
    put_segment(to, o->model);
    if (*o->version)
        strbuf_puts(to, "/versions/");
    put_segment(to, o->version);
}

static void ask_http(const struct bench_options *o, enum bench_question q, struct strbuf *ret)
{
    static const char *const ends[] = {
        [BENCH_METADATA] = "", [BENCH_CONFIG] = "/config", [BENCH_STATISTICS] = "/stats"};
    strbuf_puts(ret, "GET ");
    bench_model_path(o, ret);
    strbuf_printf(ret, "%s HTTP/1.1\r\nHost: %s\r\n\r\n", ends[q], bench_options_authority(o));
}

/* The three requests have the same two fields. */
static void ask_grpc(const struct bench_options *o, struct strbuf *ret)
{
    Inference__ModelMetadataRequest m = INFERENCE__MODEL_METADATA_REQUEST__INIT;
    m.name = (char *)(uintptr_t)o->model;
    m.version = (char *)(uintptr_t)o->version;
    bench_wire_put(ret, &m.base);
}

void bench_model_ask(const struct bench_options *o, enum bench_question q, const char **ret_path,
                     struct strbuf *ret)
{
    static const char *const methods[] = {
        [BENCH_METADATA] = "/inference.GRPCInferenceService/ModelMetadata",
        [BENCH_CONFIG] = "/inference.GRPCInferenceService/ModelConfig",
        [BENCH_STATISTICS] = "/inference.GRPCInferenceService/ModelStatistics"};
    strbuf_fini(ret);
    *ret_path = methods[q];
    if (o->protocol == BENCH_HTTP)
        ask_http(o, q, ret);
    else
        ask_grpc(o, ret);
}

/* Returns NULL if there is no room. */
static struct bench_input *bench_model_add(struct bench_model *m, const char *name,
                                           const char *datatype, size_t rank)
{
    if (m->input_count == BENCH_MODEL_INPUTS || !name || !datatype || rank > BENCH_MODEL_RANK)
        return NULL;
    struct bench_input *input = &m->inputs[m->input_count++];
    *input = (struct bench_input){.name = mem_strdup(name),
                                  .datatype = datatype_parse(datatype, strlen(datatype)),
                                  .rank = (uint32_t)rank};
    return input->datatype == DATATYPE_INVALID ? NULL : input;
}

/* A dimension; as a string too, which is how protobuf writes numbers of 64 bits in JSON. */
static bool dimension_json(yyjson_val *v, int64_t *ret)
{
    const char *text = yyjson_get_str(v);
    char *end;
    errno = 0;
    *ret = text ? strtoll(text, &end, 10) : yyjson_get_sint(v);
    return text ? end != text && !*end && !errno : yyjson_is_int(v);
}

static bool metadata_json(struct bench_model *m, yyjson_val *root)
{
    size_t i, count, k, rank;
    yyjson_val *each, *dim;
    yyjson_val *inputs = yyjson_obj_get(root, "inputs");
    yyjson_arr_foreach(inputs, i, count, each)
    {
        yyjson_val *shape = yyjson_obj_get(each, "shape");
        struct bench_input *input = bench_model_add(
            m, yyjson_get_str(yyjson_obj_get(each, "name")),
            yyjson_get_str(yyjson_obj_get(each, "datatype")), yyjson_arr_size(shape));
        if (!input)
            return false;
        yyjson_arr_foreach(shape, k, rank, dim)
        {
            if (!dimension_json(dim, &input->dims[k]))
                return false;
        }
    }
    return yyjson_is_arr(inputs);
}

static bool metadata_message(struct bench_model *m, const void *answer, size_t len)
{
    Inference__ModelMetadataResponse *got =
        inference__model_metadata_response__unpack(NULL, len, answer);
    bool ok = got;
    for (size_t i = 0; ok && i < got->n_inputs; i++) {
        const Inference__ModelMetadataResponse__TensorMetadata *each = got->inputs[i];
        struct bench_input *input = bench_model_add(m, each->name, each->datatype, each->n_shape);
        ok = input;
        for (size_t k = 0; ok && k < each->n_shape; k++)
            input->dims[k] = each->shape[k];
    }
    if (got)
        inference__model_metadata_response__free_unpacked(got, NULL);
    return ok;
}

struct err *bench_model_metadata(struct bench_model *m, enum bench_protocol p, const void *answer,
                                 size_t len)
{
    bool ok;
    if (p == BENCH_GRPC) {
        ok = metadata_message(m, answer, len);
    } else {
        yyjson_doc *doc = yyjson_read(answer, len, 0);
        ok = metadata_json(m, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
    }
    return ok ? NULL : bench_model_strange("inputs");
}

static void mark_optional(struct bench_model *m, const char *name)
{
    for (uint32_t i = 0; name && i < m->input_count; i++)
        if (strcmp(m->inputs[i].name, name) == 0)
            m->inputs[i].optional = true;
}

static bool config_json(struct bench_model *m, yyjson_val *root)
{
    size_t i, count;
    yyjson_val *each;
    int64_t batch = yyjson_get_sint(yyjson_obj_get(root, "max_batch_size"));
    m->max_batch_size = batch > 0 ? (uint32_t)batch : 0;
    m->sequences = yyjson_obj_get(root, "sequence_batching");
    m->decoupled = yyjson_get_bool(
        yyjson_obj_get(yyjson_obj_get(root, "model_transaction_policy"), "decoupled"));
    yyjson_arr_foreach(yyjson_obj_get(root, "input"), i, count, each)
    {
        if (yyjson_get_bool(yyjson_obj_get(each, "optional")))
            mark_optional(m, yyjson_get_str(yyjson_obj_get(each, "name")));
    }
    return yyjson_is_obj(root);
}

static bool config_message(struct bench_model *m, const void *answer, size_t len)
{
    Inference__ModelConfigResponse *got =
        inference__model_config_response__unpack(NULL, len, answer);
    const Inference__ModelConfig *c = got ? got->config : NULL;
    if (c) {
        m->max_batch_size = c->max_batch_size > 0 ? (uint32_t)c->max_batch_size : 0;
        m->sequences = c->scheduling_choice_case ==
                       INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING;
        m->decoupled = c->model_transaction_policy && c->model_transaction_policy->decoupled;
        for (size_t i = 0; i < c->n_input; i++)
            if (c->input[i]->optional)
                mark_optional(m, c->input[i]->name);
    }
    if (got)
        inference__model_config_response__free_unpacked(got, NULL);
    return c;
}

struct err *bench_model_config(struct bench_model *m, enum bench_protocol p, const void *answer,
                               size_t len)
{
    bool ok;
    if (p == BENCH_GRPC) {
        ok = config_message(m, answer, len);
    } else {
        yyjson_doc *doc = yyjson_read(answer, len, 0);
        ok = config_json(m, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
    }
    return ok ? NULL : bench_model_strange("configuration");
}

static void bench_add_json(struct bench_duration *d, yyjson_val *stats, const char *name)
{
    yyjson_val *v = yyjson_obj_get(stats, name);
    d->count += yyjson_get_uint(yyjson_obj_get(v, "count"));
    d->ns += yyjson_get_uint(yyjson_obj_get(v, "ns"));
}

static bool statistics_json(struct bench_statistics *s, yyjson_val *root)
{
    size_t i, count;
    yyjson_val *each;
    yyjson_val *models = yyjson_obj_get(root, "model_stats");
    yyjson_arr_foreach(models, i, count, each)
    {
        yyjson_val *stats = yyjson_obj_get(each, "inference_stats");
        s->inferences += yyjson_get_uint(yyjson_obj_get(each, "inference_count"));
        s->executions += yyjson_get_uint(yyjson_obj_get(each, "execution_count"));
        bench_add_json(&s->success, stats, "success");
        bench_add_json(&s->queue, stats, "queue");
        bench_add_json(&s->input, stats, "compute_input");
        bench_add_json(&s->infer, stats, "compute_infer");
        bench_add_json(&s->output, stats, "compute_output");
        bench_add_json(&s->cache_hit, stats, "cache_hit");
        bench_add_json(&s->cache_miss, stats, "cache_miss");
    }
    return yyjson_is_arr(models);
}

static void bench_add_message(struct bench_duration *d, const Inference__StatisticDuration *m)
{
    d->count += m ? m->count : 0;
    d->ns += m ? m->ns : 0;
}

static bool statistics_message(struct bench_statistics *s, const void *answer, size_t len)
{
    Inference__ModelStatisticsResponse *got =
        inference__model_statistics_response__unpack(NULL, len, answer);
    for (size_t i = 0; got && i < got->n_model_stats; i++) {
        const Inference__InferStatistics *stats = got->model_stats[i]->inference_stats;
        s->inferences += got->model_stats[i]->inference_count;
        s->executions += got->model_stats[i]->execution_count;
        if (!stats)
            continue;
        bench_add_message(&s->success, stats->success);
        bench_add_message(&s->queue, stats->queue);
        bench_add_message(&s->input, stats->compute_input);
        bench_add_message(&s->infer, stats->compute_infer);
        bench_add_message(&s->output, stats->compute_output);
        bench_add_message(&s->cache_hit, stats->cache_hit);
        bench_add_message(&s->cache_miss, stats->cache_miss);
    }
    if (got)
        inference__model_statistics_response__free_unpacked(got, NULL);
    return got;
}

struct err *bench_model_statistics(enum bench_protocol p, const void *answer, size_t len,
                                   struct bench_statistics *ret)
{
    *ret = (struct bench_statistics){0};
    if (p == BENCH_GRPC) {
        ret->known = statistics_message(ret, answer, len);
    } else {
        yyjson_doc *doc = yyjson_read(answer, len, 0);
        ret->known = statistics_json(ret, yyjson_doc_get_root(doc));
        yyjson_doc_free(doc);
    }
    return ret->known ? NULL : bench_model_strange("statistics");
}

/* The server may have started anew meanwhile. */
static uint64_t bench_more(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

static struct bench_duration bench_duration_since(struct bench_duration a, struct bench_duration b)
{
    return (struct bench_duration){bench_more(a.count, b.count), bench_more(a.ns, b.ns)};
}

struct bench_statistics bench_model_since(const struct bench_statistics *before,
                                          const struct bench_statistics *after)
{
    return (struct bench_statistics){
        .known = before->known && after->known,
        .inferences = bench_more(before->inferences, after->inferences),
        .executions = bench_more(before->executions, after->executions),
        .success = bench_duration_since(before->success, after->success),
        .queue = bench_duration_since(before->queue, after->queue),
        .input = bench_duration_since(before->input, after->input),
        .infer = bench_duration_since(before->infer, after->infer),
        .output = bench_duration_since(before->output, after->output),
        .cache_hit = bench_duration_since(before->cache_hit, after->cache_hit),
        .cache_miss = bench_duration_since(before->cache_miss, after->cache_miss),
    };
}

void bench_model_fini(struct bench_model *m)
{
    for (uint32_t i = 0; i < m->input_count; i++)
        mem_free(m->inputs[i].name);
}
