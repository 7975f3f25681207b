#include "serve/features.h"

#include "base/mem.h"

struct features {
    const struct feature_list *list;
    void *own[]; /* one pointer per feature */
};

struct err *features_open(const struct feature_list *list, const struct options *o,
                          struct features **ret)
{
    struct features *f = mem_zalloc(sizeof(*f) + list->count * sizeof(f->own[0]));
    struct err *e = NULL;
    f->list = list;
    for (size_t i = 0; !e && o && i < list->count; i++)
        if (list->features[i]->open)
            e = list->features[i]->open(o, &f->own[i]);
    if (e) {
        features_close(f);
        return e;
    }
    *ret = f;
    return NULL;
}

void features_close(struct features *f)
{
    for (size_t i = f ? f->list->count : 0; i-- > 0;)
        if (f->list->features[i]->close)
            f->list->features[i]->close(f->own[i]);
    mem_free(f);
}

struct err *features_make(const struct features *f, struct serve_version *v, struct scheduler **ret)
{
    struct err *e = NULL;
    *ret = NULL;
    for (size_t i = 0; !e && !*ret && i < f->list->count; i++)
        if (f->list->features[i]->make)
            e = f->list->features[i]->make(v, ret);
    if (!e && !*ret)
        e = err_new(STATUS_UNSUPPORTED, "this server was built without what schedules the model");
    return e;
}

bool features_stand_alone(const struct features *f, const struct Inference__ModelConfig *proto)
{
    for (size_t i = 0; i < f->list->count; i++) {
        const struct feature *one = f->list->features[i];
        if (one->stands_alone && one->stands_alone(proto))
            return true;
    }
    return false;
}

struct err *features_check(const struct feature_list *list, const struct model_config *config,
                           const char *model_dir, const char **ret_mend)
{
    struct err *e = NULL;
    for (size_t i = 0; !e && i < list->count; i++)
        if (list->features[i]->check)
            e = list->features[i]->check(config, model_dir, ret_mend);
    return e;
}

void features_changed(struct features *f)
{
    for (size_t i = 0; i < f->list->count; i++)
        if (f->list->features[i]->changed)
            f->list->features[i]->changed(f->own[i]);
}

struct err *features_look(const struct features *f, const char *model_dir, char ***ret)
{
    char **seen = mem_zalloc(f->list->count * sizeof(*seen));
    struct err *e = NULL;
    for (size_t i = 0; !e && i < f->list->count; i++)
        if (f->list->features[i]->look)
            e = f->list->features[i]->look(f->own[i], model_dir, &seen[i]);
    if (e) {
        features_forget(f, seen);
        seen = NULL;
    }
    *ret = seen;
    return e;
}

void features_forget(const struct features *f, char **seen)
{
    for (size_t i = 0; seen && i < f->list->count; i++)
        mem_free(seen[i]);
    mem_free(seen);
}

void features_wrap(struct features *f, struct serve_version *v, char *const *seen)
{
    for (size_t i = 0; i < f->list->count; i++)
        if (f->list->features[i]->wrap)
            f->list->features[i]->wrap(f->own[i], v, seen ? seen[i] : NULL);
}
