#include "server/control/describe.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "plugin/model.h"
#include "serve/version.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char *number_text(int64_t n)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_printf(&sb, "%" PRId64, n);
    return strbuf_take(&sb);
}

static Inference__ModelMetadataResponse__TensorMetadata *tensor(const struct model_io *io,
                                                                bool batched)
{
    Inference__ModelMetadataResponse__TensorMetadata *t = mem_alloc(sizeof(*t));
    inference__model_metadata_response__tensor_metadata__init(t);
    t->name = mem_strdup(io->name);
    t->datatype = mem_strdup(datatype_name(io->datatype));
    batched = batched && !io->shape_tensor;
    t->shape = mem_alloc((io->rank + 1u) * sizeof(*t->shape));
    if (batched)
        t->shape[t->n_shape++] = -1;
    for (uint32_t i = 0; i < io->rank; i++)
        t->shape[t->n_shape++] = io->dims[i];
    return t;
}

static Inference__ModelMetadataResponse__TensorMetadata **tensors(const struct model_io *ios,
                                                                  uint32_t count, bool batched)
{
    Inference__ModelMetadataResponse__TensorMetadata **all = mem_alloc(count * sizeof(*all));
    for (uint32_t i = 0; i < count; i++)
        all[i] = tensor(&ios[i], batched);
    return all;
}

/* Adds the versions that serve, or only the requested one. */
static void put_versions(Inference__ModelMetadataResponse *m, const struct table_model *model,
                         int64_t asked)
{
    m->versions = mem_alloc(model->entry_count * sizeof(char *));
    for (uint32_t i = 0; i < model->entry_count; i++)
        if (model->entries[i].state == TABLE_READY &&
            (asked == -1 || asked == model->entries[i].number))
            m->versions[m->n_versions++] = number_text(model->entries[i].number);
}

struct err *describe_model(struct table_view *view, const char *name, size_t name_len,
                           int64_t version, Inference__ModelMetadataResponse **ret)
{
    struct serve_version *v;
    struct err *e = table_find(view, name, name_len, version, &v);
    if (e)
        return e;
    const struct model_config *c = v->config;
    Inference__ModelMetadataResponse *m = mem_alloc(sizeof(*m));
    inference__model_metadata_response__init(m);
    m->name = mem_strdup(c->name);
    m->platform = mem_strdup(*c->platform ? c->platform : c->backend);
    const struct table_model *model = table_model(view, name, name_len);
    if (model) /* NULL if it was unloaded meanwhile */
        put_versions(m, model, version);
    bool batched = c->max_batch_size > 0;
    m->inputs = tensors(c->inputs, c->input_count, batched);
    m->n_inputs = c->input_count;
    m->outputs = tensors(c->outputs, c->output_count, batched);
    m->n_outputs = c->output_count;
    version_unpin(v);
    *ret = m;
    return NULL;
}

struct err *describe_config(struct table_view *view, const char *name, size_t name_len,
                            int64_t version, struct model_config **ret)
{
    struct serve_version *v;
    struct err *e = table_find(view, name, name_len, version, &v);
    if (e)
        return e;
    *ret = version_shown(v);
    version_unpin(v);
    return NULL;
}

struct err *describe_model_ready(struct table_view *view, const char *name, size_t name_len,
                                 int64_t version, bool *ret)
{
    struct serve_version *v;
    struct err *refused = table_refuses(view->table);
    if (refused)
        return refused;
    struct err *e = table_find(view, name, name_len, version, &v);
    *ret = !e && model_ready(v->model);
    if (!e)
        version_unpin(v);
    err_free(e);
    return NULL;
}

static Inference__RepositoryIndexResponse__ModelIndex *index_entry(const struct table_model *model,
                                                                   const struct table_entry *e)
{
    Inference__RepositoryIndexResponse__ModelIndex *m = mem_alloc(sizeof(*m));
    inference__repository_index_response__model_index__init(m);
    m->name = mem_strdup(model->name);
    if (!e)
        return m;
    if (e->number)
        m->version = number_text(e->number);
    m->state = mem_strdup(table_state_name(e->state));
    if (*e->reason)
        m->reason = mem_strdup(e->reason);
    return m;
}

Inference__RepositoryIndexResponse *describe_index(struct table_view *view, bool ready_only)
{
    return describe_index_of(view, ready_only, UINT64_MAX);
}

Inference__RepositoryIndexResponse *describe_index_of(struct table_view *view, bool ready_only,
                                                      uint64_t places)
{
    uint32_t count;
    const struct table_model *models = table_models(view, &count);
    size_t most = 0;
    for (uint32_t i = 0; i < count; i++)
        most += models[i].entry_count ? models[i].entry_count : 1;
    Inference__RepositoryIndexResponse *m = mem_alloc(sizeof(*m));
    inference__repository_index_response__init(m);
    m->models = mem_alloc(most * sizeof(*m->models));
    for (uint32_t i = 0; i < count; i++) {
        if (places != UINT64_MAX && !(models[i].places & places))
            continue;
        if (!models[i].entry_count && !ready_only)
            m->models[m->n_models++] = index_entry(&models[i], NULL);
        for (uint32_t k = 0; k < models[i].entry_count; k++)
            if (!ready_only || models[i].entries[k].state == TABLE_READY)
                m->models[m->n_models++] = index_entry(&models[i], &models[i].entries[k]);
    }
    return m;
}

struct err *describe_parse_version(const char *text, size_t len, int64_t *ret)
{
    *ret = -1;
    if (!len)
        return NULL;
    char *copy = mem_strndup(text, len);
    char *end;
    errno = 0;
    long long n = strtoll(copy, &end, 10);
    struct err *e = NULL;
    if (end == copy || *end || errno)
        e = err_new(STATUS_INVALID_ARG,
                    "failed to get model version from specified version string '%s' (details: "
                    "stol), version should be an integral value > 0",
                    copy);
    else if (n <= 0)
        e = err_new(
            STATUS_INVALID_ARG,
            "invalid model version specified '%s' , version should be an integral value > 0", copy);
    mem_free(copy);
    *ret = n;
    return e;
}
