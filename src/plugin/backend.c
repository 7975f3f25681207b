#include "plugin/backend.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/dl.h"
#include "os/file.h"
#include "plugin/custom_backend.h"
#include "plugin/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#define BACKEND_MAGIC 0x42454e44u

/* The backends that are part of the server. */
static const struct backend_builtin *const builtins[] = {
    &custom_backend,
};

void backend_registry_init(struct backend_registry *r, const char *directory,
                           const struct backend_setting *settings, size_t setting_count,
                           bool auto_complete)
{
    *r = (struct backend_registry){.directory = directory,
                                   .settings = settings,
                                   .setting_count = setting_count,
                                   .auto_complete = auto_complete};
    mutex_init(&r->lock, MUTEX_RANK_REGISTRY);
    mutex_cond_init(&r->changed);
}

bool backend_is(const void *handle)
{
    const struct plugin_backend *o = handle;
    return o && o->magic == BACKEND_MAGIC;
}

void backend_say_failed(const struct plugin_backend *b, const char *model, const char *instance,
                        const char *entry, const struct err *e)
{
    LOG_ERROR("backend '%s'%s%s%s%s%s: TRITONBACKEND_%s returned an error: %s", b->name,
              model ? " of model '" : "", model ? model : "", instance ? "', instance '" : "",
              instance ? instance : "", model ? "'" : "", entry, err_message(e));
}

struct plugin_backend *backend_check(void *handle)
{
    struct plugin_backend *b = handle;
    CHECK_MAGIC(b, BACKEND_MAGIC);
    return b;
}

const char *backend_setting_value(const struct backend_registry *r, const char *backend,
                                  const char *key)
{
    const char *found = NULL;
    bool specific = false;
    for (size_t i = 0; i < r->setting_count; i++) {
        const struct backend_setting *s = &r->settings[i];
        bool mine = strcmp(s->backend, backend) == 0;
        if (strcmp(s->key, key) != 0 || (!mine && (*s->backend || specific)))
            continue;
        found = s->value;
        specific = mine;
    }
    return found;
}

/* {"cmdline":{...}}: the defaults, then what was set for all backends, then what was set for this one. */
static struct message *make_config(const struct backend_registry *r, const char *name)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    CHECK(doc);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_val *line = yyjson_mut_obj_add_obj(doc, root, "cmdline");
    yyjson_mut_obj_add_str(doc, line, "auto-complete-config", r->auto_complete ? "true" : "false");
    yyjson_mut_obj_add_str(doc, line, "backend-directory", r->directory);
    yyjson_mut_obj_add_str(doc, line, "min-compute-capability", "6.000000");
    yyjson_mut_obj_add_str(doc, line, "default-max-batch-size", "4");
    for (int specific = 0; specific < 2; specific++)
        for (size_t i = 0; i < r->setting_count; i++) {
            const struct backend_setting *s = &r->settings[i];
            if (strcmp(s->backend, specific ? name : "") != 0)
                continue;
            yyjson_mut_obj_remove_key(line, s->key);
            yyjson_mut_obj_add_str(doc, line, s->key, s->value);
        }
    size_t len;
    char *json = yyjson_mut_write(doc, 0, &len);
    CHECK(json);
    yyjson_mut_doc_free(doc);
    return message_new(json, len);
}

static struct plugin_backend *backend_new(const struct backend_registry *r, const char *name,
                                          const char *dir, const char *path)
{
    struct plugin_backend *b = MEM_NEW(struct plugin_backend);
    b->magic = BACKEND_MAGIC;
    b->name = mem_strdup(name);
    b->dir = mem_strdup(dir);
    b->path = mem_strdup(path);
    b->config = make_config(r, name);
    return b;
}

static void fini(struct plugin_backend *b)
{
    message_free(b->config);
    mem_free(b->name);
    mem_free(b->dir);
    mem_free(b->path);
    b->magic = 0;
}

static void backend_free(struct plugin_backend *b)
{
    fini(b);
    mem_free(b);
}

void backend_init_remote(struct plugin_backend *b, const struct backend_registry *r,
                         const char *name, const struct backend_entries *entries)
{
    *b = (struct plugin_backend){.magic = BACKEND_MAGIC, .entries = *entries};
    b->name = mem_strdup(name);
    b->dir = mem_strdup("");
    b->path = mem_strdup(name);
    b->config = make_config(r, name);
    attribute_init(&b->attributes);
}

void backend_fini_remote(struct plugin_backend *b)
{
    fini(b);
}

static bool promises(const struct plugin_backend *b, const char *symbol)
{
    const uint32_t *promise = dl_symbol(b->dl, symbol);
    return promise && *promise != 0;
}

static struct err *find_entries(struct plugin_backend *b)
{
    struct backend_entries *e = &b->entries;
    *(void **)&e->initialize = dl_symbol(b->dl, "TRITONBACKEND_Initialize");
    *(void **)&e->finalize = dl_symbol(b->dl, "TRITONBACKEND_Finalize");
    *(void **)&e->attribute = dl_symbol(b->dl, "TRITONBACKEND_GetBackendAttribute");
    *(void **)&e->model_initialize = dl_symbol(b->dl, "TRITONBACKEND_ModelInitialize");
    *(void **)&e->model_finalize = dl_symbol(b->dl, "TRITONBACKEND_ModelFinalize");
    *(void **)&e->instance_initialize = dl_symbol(b->dl, "TRITONBACKEND_ModelInstanceInitialize");
    *(void **)&e->instance_finalize = dl_symbol(b->dl, "TRITONBACKEND_ModelInstanceFinalize");
    *(void **)&e->execute = dl_symbol(b->dl, "TRITONBACKEND_ModelInstanceExecute");
    b->inline_ok = promises(b, "nereid_backend_inline_v1");
    b->fills_outputs = promises(b, "nereid_backend_fills_outputs_v1");
    if (!e->execute)
        return err_new(STATUS_NOT_FOUND,
                       "backend '%s': '%s' does not export TRITONBACKEND_ModelInstanceExecute",
                       b->name, b->path);
    return NULL;
}

/* A plug-in that brings a server library of its own would call into that one, with objects of this one. */
static struct err *check_alone(const struct plugin_backend *b)
{
    char *other = dl_find_other("libtritonserver", (const void *)(uintptr_t)check_alone);
    if (!other)
        return NULL;
    struct err *e = err_new(STATUS_INVALID_ARG,
                            "backend '%s' brings a second server library into the process, '%s'; "
                            "expected one that needs "
                            "none, or needs 'libtritonserver.so'",
                            b->name, other);
    mem_free(other);
    return e;
}

static const struct backend_builtin *find_builtin(const char *name)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++)
        if (strcmp(builtins[i]->name, name) == 0)
            return builtins[i];
    return NULL;
}

static struct err *open_library(struct plugin_backend *b)
{
    dl_make_self_global((const void *)(uintptr_t)open_library);
    struct err *e = dl_open(b->path, &b->dl);
    if (!e)
        e = check_alone(b);
    return e ? e : find_entries(b);
}

static void finalize(struct plugin_backend *b)
{
    struct err *e =
        b->entries.finalize ? (struct err *)b->entries.finalize((TRITONBACKEND_Backend *)b) : NULL;
    if (e)
        backend_say_failed(b, NULL, NULL, "Finalize", e);
    err_free(e);
}

/* What fails is finalised all the same: as in the reference, plug-ins leave to Finalize what they made before they failed. */
static struct err *initialize(struct plugin_backend *b)
{
    const char *entry = "Initialize";
    struct err *e = NULL;
    attribute_init(&b->attributes);
    if (b->entries.initialize)
        e = (struct err *)b->entries.initialize((TRITONBACKEND_Backend *)b);
    if (!e && b->entries.attribute) {
        entry = "GetBackendAttribute";
        e = (struct err *)b->entries.attribute((TRITONBACKEND_Backend *)b,
                                               (TRITONBACKEND_BackendAttribute *)&b->attributes);
    }
    if (e) {
        backend_say_failed(b, NULL, NULL, entry, e);
        finalize(b);
    }
    return e;
}

static struct err *backend_load(struct plugin_backend *b)
{
    const struct backend_builtin *builtin = *b->dir ? NULL : find_builtin(b->name);
    struct err *e = NULL;
    if (builtin)
        b->entries = builtin->entries;
    else
        e = open_library(b);
    if (!e)
        e = initialize(b);
    if (!e)
        LOG_VERBOSE(1, "loaded backend '%s' from '%s'%s", b->name, b->path,
                    b->inline_ok ? " (may run inline)" : "");
    return e;
}

/* The directory of a library: with the model, or among the backends. NULL when it is nowhere. */
static char *find_library(const struct backend_registry *r, const char *name, const char *model_dir,
                          int64_t version, const char *file)
{
    struct strbuf places[3] = {STRBUF_INIT, STRBUF_INIT, STRBUF_INIT};
    strbuf_printf(&places[0], "%s/%" PRId64, model_dir, version);
    strbuf_puts(&places[1], model_dir);
    strbuf_printf(&places[2], "%s/%s", r->directory, name);
    char *found = NULL;
    for (int i = 0; i < 3; i++) {
        char *path = file_join(strbuf_str(&places[i]), file);
        if (!found && file_exists(path))
            found = mem_strdup(strbuf_str(&places[i]));
        mem_free(path);
        strbuf_fini(&places[i]);
    }
    return found;
}

/* The backend of a path, loaded by this thread or by another that was first. */
static struct err *get_by_path(struct backend_registry *r, const char *name, const char *dir,
                               const char *path, bool wait, struct plugin_backend **ret)
{
    mutex_lock(&r->lock);
    struct plugin_backend *b = map_get(&r->by_path, path, strlen(path));
    if (b && b->loading && !wait) {
        mutex_unlock(&r->lock);
        *ret = NULL;
        return NULL;
    }
    while (b && b->loading) {
        mutex_cond_wait(&r->changed, &r->lock);
        b = map_get(&r->by_path, path, strlen(path));
    }
    bool ready = b && b->ready;
    if (!ready) {
        b = backend_new(r, name, dir, path);
        b->loading = true;
        map_put(&r->by_path, path, strlen(path), b);
    }
    mutex_unlock(&r->lock);
    *ret = b;
    if (ready)
        return NULL;

    struct err *e = backend_load(b);
    mutex_lock(&r->lock);
    b->loading = false;
    b->ready = !e;
    if (e)
        map_remove(&r->by_path, path, strlen(path));
    mutex_cond_broadcast(&r->changed);
    mutex_unlock(&r->lock);
    if (e)
        backend_free(b);
    return e;
}

struct err *backend_get(struct backend_registry *r, const char *name, const char *model_dir,
                        int64_t version, bool wait, struct plugin_backend **ret)
{
    if (strchr(name, '/') || name[0] == '.')
        return err_new(STATUS_INVALID_ARG,
                       "invalid backend name '%s': a name has no '/' and does not begin with '.'",
                       name);
    struct strbuf file = STRBUF_INIT;
    strbuf_printf(&file, "libtriton_%s.so", name);
    char *dir = find_library(r, name, model_dir, version, strbuf_str(&file));
    struct err *e;
    if (dir) {
        char *path = file_join(dir, strbuf_str(&file));
        e = get_by_path(r, name, dir, path, wait, ret);
        mem_free(path);
    } else if (find_builtin(name)) {
        e = get_by_path(r, name, "", name, wait, ret);
    } else {
        e = err_new(STATUS_INVALID_ARG,
                    "unable to find backend library for backend '%s', try specifying runtime on "
                    "the model configuration. "
                    "Searched for %s in '%s/%" PRId64 "', '%s' and '%s/%s'; --backend-directory "
                    "says where backends lie",
                    name, strbuf_str(&file), model_dir, version, model_dir, r->directory, name);
    }
    mem_free(dir);
    strbuf_fini(&file);
    return e;
}

void backend_registry_fini(struct backend_registry *r)
{
    size_t pos = 0;
    void *value;
    while (map_next(&r->by_path, &pos, NULL, &value)) {
        struct plugin_backend *b = value;
        finalize(b);
        backend_free(b);
    }
    map_fini(&r->by_path);
    mutex_cond_fini(&r->changed);
    mutex_fini(&r->lock);
}
