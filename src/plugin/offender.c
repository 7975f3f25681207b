#include "plugin/offender.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/dl.h"
#include "os/mutex.h"
#include "plugin/backend.h"
#include "plugin/instance.h"
#include "plugin/model.h"

#include <string.h>

#define MAX_NAMED 4u

static struct mutex lock = MUTEX_INIT(MUTEX_RANK_LEAF); /* guards models */
static struct list models = {&models, &models};

void offender_enter(struct plugin_model *m)
{
    mutex_lock(&lock);
    list_append(&models, &m->living);
    mutex_unlock(&lock);
}

void offender_leave(struct plugin_model *m)
{
    mutex_lock(&lock);
    list_remove(&m->living);
    mutex_unlock(&lock);
}

/* Names the models that a library runs. There is usually only one. */
static void name_models(struct strbuf *sb, const char *path)
{
    unsigned named = 0;
    mutex_lock(&lock);
    LIST_EACH (node, &models) {
        const struct plugin_model *m = LIST_ITEM(node, struct plugin_model, living);
        if (!m->backend->path || strcmp(m->backend->path, path) != 0)
            continue;
        if (named == 0)
            strbuf_printf(sb, "backend '%s' of model '%s'", m->backend->name, m->name);
        else if (named < MAX_NAMED)
            strbuf_printf(sb, " or '%s'", m->name);
        named++;
    }
    mutex_unlock(&lock);
    if (named > MAX_NAMED)
        strbuf_printf(sb, " or %u more", named - MAX_NAMED);
    if (!named)
        strbuf_printf(sb, "library '%s'", path);
}

char *offender_name(const void *caller)
{
    struct strbuf sb = STRBUF_INIT;
    const struct plugin_instance *i = instance_current();
    if (i) {
        strbuf_printf(&sb, "backend '%s' of model '%s', instance '%s'", i->model->backend->name,
                      i->model->name, i->name);
        return strbuf_take(&sb);
    }
    char *path = dl_path_of(caller);
    if (path)
        name_models(&sb, path);
    else
        strbuf_puts(&sb, "unknown code");
    mem_free(path);
    return strbuf_take(&sb);
}
