/* The statistics of server/control/describe.h. */
#include "server/control/describe.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "infer/response_stats.h"
#include "infer/stats.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "plugin/usage.h"
#include "serve/runner.h"
#include "serve/version.h"

#include <inttypes.h>
#include <string.h>

static Inference__StatisticDuration *duration(struct stats_duration d)
{
    Inference__StatisticDuration *m = mem_alloc(sizeof(*m));
    inference__statistic_duration__init(m);
    m->count = d.count;
    m->ns = d.ns;
    return m;
}

static Inference__InferStatistics *infer_statistics(const struct stats_sums *s)
{
    Inference__InferStatistics *m = mem_alloc(sizeof(*m));
    inference__infer_statistics__init(m);
    m->success = duration(s->success);
    m->fail = duration(s->fail);
    m->queue = duration(s->queue);
    m->compute_input = duration(s->compute_input);
    m->compute_infer = duration(s->compute_infer);
    m->compute_output = duration(s->compute_output);
    m->cache_hit = duration(s->cache_hit);
    m->cache_miss = duration(s->cache_miss);
    return m;
}

static void describe_statistics_put_batches(Inference__ModelStatistics *m,
                                            const struct stats *stats)
{
    struct stats_batch_sums *batches;
    size_t count = stats_sum_batches(stats, &batches);
    m->batch_stats = mem_alloc(count * sizeof(*m->batch_stats));
    m->n_batch_stats = count;
    for (size_t i = 0; i < count; i++) {
        Inference__InferBatchStatistics *b = mem_alloc(sizeof(*b));
        inference__infer_batch_statistics__init(b);
        b->batch_size = batches[i].batch_size;
        b->compute_input = duration(batches[i].compute_input);
        b->compute_infer = duration(batches[i].compute_infer);
        b->compute_output = duration(batches[i].compute_output);
        m->batch_stats[i] = b;
    }
    mem_free(batches);
}

/* Adds the memory of the model and all its instances. */
static void put_usage(Inference__ModelStatistics *m, struct serve_version *v)
{
    static const char *const types[] = {"CPU", "CPU_PINNED", "GPU"};
    struct usage_row *rows = NULL;
    size_t count = 0;
    if (v->model)
        usage_sum(&v->model->usage, &rows, &count);
    mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->instances.runner_count; i++)
        usage_sum(&v->instances.runners[i]->instance->usage, &rows, &count);
    for (uint32_t i = 0; i < v->instances.passive_count; i++)
        usage_sum(&v->instances.passive[i]->usage, &rows, &count);
    mutex_unlock(&v->lock);
    m->memory_usage = mem_alloc((count + 1) * sizeof(*m->memory_usage));
    m->n_memory_usage = count;
    for (size_t i = 0; i < count; i++) {
        Inference__MemoryUsage *u = mem_alloc(sizeof(*u));
        inference__memory_usage__init(u);
        u->type = mem_strdup(types[rows[i].memory]);
        u->id = rows[i].device;
        u->byte_size = rows[i].bytes;
        m->memory_usage[i] = u;
    }
    mem_free(rows);
}

static Inference__InferResponseStatistics *response_statistics(const struct response_stats_row *row)
{
    Inference__InferResponseStatistics *m = mem_alloc(sizeof(*m));
    inference__infer_response_statistics__init(m);
    m->compute_infer = duration(row->compute_infer);
    m->compute_output = duration(row->compute_output);
    m->success = duration(row->success);
    m->fail = duration(row->fail);
    m->empty_response = duration(row->empty_response);
    m->cancel = duration(row->cancel);
    return m;
}

static void put_responses(Inference__ModelStatistics *m, struct stats *stats)
{
    struct response_stats *responses = stats_responses(stats, false);
    if (!responses)
        return;
    struct response_stats_row *rows;
    size_t count = response_stats_sum(responses, &rows);
    m->response_stats = mem_alloc((count + 1) * sizeof(*m->response_stats));
    m->n_response_stats = count;
    for (size_t i = 0; i < count; i++) {
        Inference__ModelStatistics__ResponseStatsEntry *entry = mem_alloc(sizeof(*entry));
        inference__model_statistics__response_stats_entry__init(entry);
        struct strbuf key = STRBUF_INIT;
        strbuf_printf(&key, "%" PRIu32, rows[i].index);
        entry->key = strbuf_take(&key);
        entry->value = response_statistics(&rows[i]);
        m->response_stats[i] = entry;
    }
    mem_free(rows);
}

static Inference__ModelStatistics *model_statistics(const char *name,
                                                    const struct table_entry *entry)
{
    struct stats_sums sums;
    stats_sum(entry->version->stats, &sums);
    Inference__ModelStatistics *m = mem_alloc(sizeof(*m));
    inference__model_statistics__init(m);
    struct strbuf number = STRBUF_INIT;
    strbuf_printf(&number, "%" PRId64, entry->number);
    m->name = mem_strdup(name);
    m->version = strbuf_take(&number);
    m->last_inference = sums.last_inference_ms;
    m->inference_count = sums.inference_count;
    m->execution_count = sums.execution_count;
    m->inference_stats = infer_statistics(&sums);
    describe_statistics_put_batches(m, entry->version->stats);
    put_usage(m, entry->version);
    put_responses(m, entry->version->stats);
    return m;
}

/* Adds a model. name: its name in the answer. */
static void add_model(Inference__ModelStatisticsResponse *r, const struct table_model *model,
                      const char *name, int64_t version)
{
    for (uint32_t i = 0; i < model->entry_count; i++) {
        const struct table_entry *e = &model->entries[i];
        if (e->state != TABLE_READY || (version != -1 && version != e->number))
            continue;
        r->model_stats =
            mem_realloc(r->model_stats, (r->n_model_stats + 1) * sizeof(*r->model_stats));
        r->model_stats[r->n_model_stats++] = model_statistics(name, e);
    }
}

struct err *describe_statistics(struct table_view *view, const char *name, size_t name_len,
                                int64_t version, Inference__ModelStatisticsResponse **ret)
{
    Inference__ModelStatisticsResponse *r = mem_alloc(sizeof(*r));
    inference__model_statistics_response__init(r);
    struct err *e = table_refuses(view->table);
    if (e) {
        protobuf_c_message_free_unpacked(&r->base, NULL);
        return e;
    }
    if (name_len) {
        const struct table_model *model = table_model(view, name, name_len);
        if (model)
            add_model(r, model, model->name, version);
        if (!model || model->latest >= model->entry_count)
            e = err_new(STATUS_INVALID_ARG, "requested model '%.*s' is not available",
                        (int)name_len, name);
        else if (!r->n_model_stats)
            e = err_new(STATUS_INVALID_ARG,
                        "requested model version is not available for model '%.*s'", (int)name_len,
                        name);
    } else {
        uint32_t count;
        const struct table_model *models = table_models(view, &count);
        for (uint32_t i = 0; i < count; i++)
            add_model(r, &models[i], table_title(&models[i]), -1);
    }
    if (e) {
        protobuf_c_message_free_unpacked(&r->base, NULL);
        return e;
    }
    *ret = r;
    return NULL;
}
