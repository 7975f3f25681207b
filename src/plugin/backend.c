#include "plugin/backend.h"

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "os/dl.h"
#include "os/files/file.h"
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

static void say_default(const struct backend_registry *r, const char *name, const char *key,
                        const char *standard)
{
    const char *given = backend_setting_value(r, name, key);
    LOG_VERBOSE(1,
                given ? "Found overwritten default setting: %s,%s"
                      : "Adding default backend config setting: %s,%s",
                key, given ? given : standard);
}

/* {"cmdline":{...}}: the defaults, then the settings for all backends, then the settings for
 * this one. */
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
    say_default(r, name, "default-max-batch-size", "4");
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

/* Execution in two halves needs all four functions. */
static void find_halves(struct plugin_backend *b)
{
    struct backend_entries *e = &b->entries;
    *(void **)&e->bell = dl_symbol(b->dl, "nereid_instance_bell_v1");
    *(void **)&e->begin = dl_symbol(b->dl, "nereid_instance_begin_v1");
    *(void **)&e->look = dl_symbol(b->dl, "nereid_instance_look_v1");
    *(void **)&e->finish = dl_symbol(b->dl, "nereid_instance_finish_v1");
    if (!e->begin || !e->look || !e->finish)
        e->bell = NULL;
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
    *(void **)&e->instance_inline = dl_symbol(b->dl, "nereid_instance_inline_v1");
    find_halves(b);
    b->inline_ok = promises(b, "nereid_backend_inline_v1");
    b->fills_outputs = promises(b, "nereid_backend_fills_outputs_v1");
    b->answers_last = promises(b, "nereid_backend_answers_last_v1");
    if (!e->execute)
        return err_new(STATUS_NOT_FOUND,
                       "backend '%s': '%s' does not export TRITONBACKEND_ModelInstanceExecute",
                       b->name, b->path);
    return NULL;
}

/* Refuses a plug-in that brings its own server library: it would call that library with objects
 * of this one. */
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

static struct err *plugin_backend_open_library(struct plugin_backend *b)
{
    dl_make_self_global((const void *)(uintptr_t)plugin_backend_open_library);
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

/* Initializes the backend. If that fails it is finalised all the same, as in the reference:
 * plug-ins rely on Finalize to free what they made. */
static struct err *plugin_backend_initialize(struct plugin_backend *b)
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
        e = plugin_backend_open_library(b);
    if (!e)
        e = plugin_backend_initialize(b);
    if (!e)
        LOG_VERBOSE(1, "loaded backend '%s' from '%s'%s", b->name, b->path,
                    b->inline_ok ? " (may run inline)" : "");
    return e;
}

/* the runtime of a backend that is written in Python, which the python backend runs */
#define PYTHON_RUNTIME "model.py"

struct search {
    char *file;
    char *places[4];
    size_t count;
    char *dir; /* the directory where it was found; NULL = not found */
};

static void add_place(struct search *s, char *place)
{
    char *path = file_join(place, s->file);
    if (!s->dir && file_exists(path))
        s->dir = place;
    s->places[s->count++] = place;
    mem_free(path);
}

/* Searches the model's directories, then those of the backends. */
static void search_library(struct search *s, const char *directory, const struct backend_wanted *w)
{
    bool python = strcmp(w->runtime, PYTHON_RUNTIME) == 0;
    struct strbuf text = STRBUF_INIT;
    *s = (struct search){.file = mem_strdup(w->runtime)};
    if (!*w->runtime || python) {
        strbuf_printf(&text, "libtriton_%s.so", python ? "python" : w->name);
        mem_free(s->file);
        s->file = strbuf_take(&text);
    }
    strbuf_printf(&text, "%s/%" PRId64, w->model_dir, w->version);
    add_place(s, strbuf_take(&text));
    add_place(s, mem_strdup(w->model_dir));
    add_place(s, file_join(directory, w->name));
    if (python)
        add_place(s, file_join(directory, "python"));
}

static void search_fini(struct search *s)
{
    for (size_t i = 0; i < s->count; i++)
        mem_free(s->places[i]);
    mem_free(s->file);
}

static struct err *plugin_backend_not_found(const struct search *s, const struct backend_wanted *w)
{
    if (!*w->runtime)
        return err_new(STATUS_INVALID_ARG,
                       "unable to find backend library for backend '%s', try specifying runtime on "
                       "the model configuration. Name a backend that is installed, install this "
                       "one, or say with --backend-directory where it lies. Searched for %s in "
                       "'%s', '%s' and '%s'",
                       w->name, s->file, s->places[0], s->places[1], s->places[2]);
    struct strbuf places = STRBUF_INIT;
    for (size_t i = 0; i < s->count; i++)
        strbuf_printf(&places, "'%s' ", s->places[i]);
    struct err *e = err_new(STATUS_INVALID_ARG,
                            "unable to find backend library '%s' for model '%s', searched: %s",
                            s->file, w->model, strbuf_str(&places));
    strbuf_fini(&places);
    return e;
}

/* Checks that a file named by a configuration lies below the directory in which it was found,
 * also after symbolic links are resolved. *path is freed and replaced by the path without links. */
static struct err *check_runtime(const struct search *s, const struct backend_wanted *w,
                                 char **path)
{
    char *root = file_absolute(s->dir);
    char *real = file_absolute(*path);
    size_t len = strlen(root);
    bool escapes = strncmp(real, root, len) != 0 || real[len] != '/';
    mem_free(root);
    mem_free(*path);
    *path = real;
    if (escapes)
        return err_new(STATUS_INVALID_ARG,
                       "backend library name '%s' escapes backend directory '%s', for model '%s', "
                       "check model config runtime field",
                       s->file, s->dir, w->model);
    if (strcmp(w->runtime, PYTHON_RUNTIME) == 0)
        return err_new(STATUS_UNSUPPORTED,
                       "backend '%s' of model '%s': a backend that is a model.py is not served; "
                       "models of the python backend leave out 'runtime'",
                       w->name, w->model);
    return NULL;
}

/* The backend with a path, loaded by this thread or by another one. */
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

/* Where the library is; the path is the caller's, NULL for a backend that is part of the server. */
static struct err *find_path(const struct backend_wanted *w, struct search *s, char **ret)
{
    *ret = NULL;
    if (!s->dir)
        return !*w->runtime && find_builtin(w->name) ? NULL : plugin_backend_not_found(s, w);
    *ret = file_join(s->dir, s->file);
    return *w->runtime ? check_runtime(s, w, ret) : NULL;
}

static struct err *check_name(const char *name)
{
    if (!strchr(name, '/') && name[0] != '.')
        return NULL;
    return err_new(STATUS_INVALID_ARG,
                   "invalid backend name '%s': a name has no '/' and does not begin with '.'",
                   name);
}

struct err *backend_find(const char *directory, const struct backend_wanted *w)
{
    struct err *e = check_name(w->name);
    if (e)
        return e;
    struct search s;
    char *path;
    search_library(&s, directory, w);
    e = find_path(w, &s, &path);
    mem_free(path);
    search_fini(&s);
    return e;
}

struct err *backend_get(struct backend_registry *r, const struct backend_wanted *w, bool wait,
                        struct plugin_backend **ret)
{
    struct err *e = check_name(w->name);
    if (e)
        return e;
    struct search s;
    char *path;
    search_library(&s, r->directory, w);
    e = find_path(w, &s, &path);
    if (!e)
        e = get_by_path(r, w->name, path ? s.dir : "", path ? path : w->name, wait, ret);
    mem_free(path);
    search_fini(&s);
    return e;
}

void backend_registry_each(struct backend_registry *r,
                           void (*fn)(void *arg, const struct plugin_backend *b), void *arg)
{
    size_t pos = 0;
    void *value;
    mutex_lock(&r->lock);
    while (map_next(&r->by_path, &pos, NULL, &value)) {
        const struct plugin_backend *b = value;
        if (b->ready && *b->dir)
            fn(arg, b);
    }
    mutex_unlock(&r->lock);
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
