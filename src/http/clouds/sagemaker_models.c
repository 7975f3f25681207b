#include "http/clouds/sagemaker_models.h"

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/json_out.h"
#include "os/mutex.h"

#include <string.h>

struct sagemaker_model {
    char *name;
    char *target;
    char *url;
    bool serves; /* it is neither being loaded nor being unloaded */
};

struct sagemaker_models {
    struct mutex lock;  /* rank LEAF; guards the maps and what they hold */
    struct map by_name; /* -> sagemaker_model, owned */
    struct map by_target;
};

struct sagemaker_models *sagemaker_models_new(void)
{
    struct sagemaker_models *all = MEM_NEW(struct sagemaker_models);
    mutex_init(&all->lock, MUTEX_RANK_LEAF);
    return all;
}

static void sagemaker_model_free(struct sagemaker_model *m)
{
    mem_free(m->name);
    mem_free(m->target);
    mem_free(m->url);
    mem_free(m);
}

void sagemaker_models_free(struct sagemaker_models *all)
{
    size_t pos = 0;
    void *m;
    while (map_next(&all->by_name, &pos, NULL, &m))
        sagemaker_model_free(m);
    map_fini(&all->by_name);
    map_fini(&all->by_target);
    mutex_fini(&all->lock);
    mem_free(all);
}

static struct err *sagemaker_models_check_text(const char *what, const char *text, size_t most)
{
    size_t len = strlen(text);
    if (len && len < most)
        return NULL;
    return err_new(STATUS_INVALID_ARG, "'%s': expected 1 to %zu bytes, found %zu", what, most - 1,
                   len);
}

/* Whether a model of these names can be added. Lock held. */
static struct err *check_free(const struct sagemaker_models *all, const char *name,
                              const char *target)
{
    if (map_get(&all->by_name, name, strlen(name)))
        return err_new(STATUS_ALREADY_EXISTS, "model '%s' has been loaded already", name);
    if (map_get(&all->by_target, target, strlen(target)))
        return err_new(STATUS_ALREADY_EXISTS,
                       "failed to load '%s': a model is served as '%s' already", name, target);
    if (all->by_name.count >= SAGEMAKER_MODELS_MOST)
        return err_busy("%u models are loaded already", SAGEMAKER_MODELS_MOST);
    return NULL;
}

struct err *sagemaker_models_add(struct sagemaker_models *all, const char *name, const char *target,
                                 const char *url)
{
    struct err *e = sagemaker_models_check_text("model_name", name, SAGEMAKER_MODELS_NAME_BYTES);
    if (!e)
        e = sagemaker_models_check_text("X-Amzn-SageMaker-Target-Model", target,
                                        SAGEMAKER_MODELS_NAME_BYTES);
    if (!e)
        e = sagemaker_models_check_text("url", url, SAGEMAKER_MODELS_URL_BYTES);
    if (e)
        return e;
    mutex_lock(&all->lock);
    e = check_free(all, name, target);
    if (!e) {
        struct sagemaker_model *m = MEM_NEW(struct sagemaker_model);
        m->name = mem_strdup(name);
        m->target = mem_strdup(target);
        m->url = mem_strdup(url);
        map_put(&all->by_name, name, strlen(name), m);
        map_put(&all->by_target, target, strlen(target), m);
    }
    mutex_unlock(&all->lock);
    return e;
}

static void settle_model(struct sagemaker_models *all, const char *name, bool stays)
{
    mutex_lock(&all->lock);
    struct sagemaker_model *m = map_get(&all->by_name, name, strlen(name));
    if (stays) {
        m->serves = true;
    } else {
        map_remove(&all->by_target, m->target, strlen(m->target));
        map_remove(&all->by_name, name, strlen(name));
        sagemaker_model_free(m);
    }
    mutex_unlock(&all->lock);
}

void sagemaker_models_loaded(struct sagemaker_models *all, const char *name, bool ok)
{
    settle_model(all, name, ok);
}

void sagemaker_models_left(struct sagemaker_models *all, const char *name, bool ok)
{
    settle_model(all, name, !ok);
}

/* One that serves; NULL = there is none. Lock held. */
static struct sagemaker_model *serving_model(const struct sagemaker_models *all, const char *name,
                                             size_t len)
{
    struct sagemaker_model *m = map_get(&all->by_name, name, len);
    return m && m->serves ? m : NULL;
}

bool sagemaker_models_target(struct sagemaker_models *all, const char *name, size_t len,
                             bool leaves, char ret[SAGEMAKER_MODELS_NAME_BYTES])
{
    mutex_lock(&all->lock);
    struct sagemaker_model *m = serving_model(all, name, len);
    if (m)
        memcpy(ret, m->target, strlen(m->target) + 1);
    if (m && leaves)
        m->serves = false;
    mutex_unlock(&all->lock);
    return m;
}

static void sagemaker_models_put(const struct sagemaker_model *m, struct strbuf *to)
{
    strbuf_puts(to, "{\"modelName\":");
    json_out_put(to, m->name);
    strbuf_puts(to, ",\"modelUrl\":");
    json_out_put(to, m->url);
    strbuf_putc(to, '}');
}

bool sagemaker_models_tell(struct sagemaker_models *all, const char *name, size_t len,
                           struct strbuf *to)
{
    mutex_lock(&all->lock);
    const struct sagemaker_model *m = serving_model(all, name, len);
    if (m)
        sagemaker_models_put(m, to);
    mutex_unlock(&all->lock);
    return m;
}

void sagemaker_models_list(struct sagemaker_models *all, struct strbuf *to)
{
    size_t pos = 0;
    void *m;
    bool first = true;
    strbuf_puts(to, "{\"models\":[");
    mutex_lock(&all->lock);
    while (map_next(&all->by_name, &pos, NULL, &m)) {
        if (!((const struct sagemaker_model *)m)->serves)
            continue;
        if (!first)
            strbuf_putc(to, ',');
        sagemaker_models_put(m, to);
        first = false;
    }
    mutex_unlock(&all->lock);
    strbuf_puts(to, "]}");
}
