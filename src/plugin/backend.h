#pragma once
/* Backends: the shared libraries libtriton_NAME.so that run models, and the registry of the
 * loaded ones. The C ABI knows a backend as TRITONBACKEND_Backend. Each library is loaded once
 * per server and never unmapped, because runtimes leave threads behind that still run its code. */
#include "base/err.h"
#include "base/map.h"
#include "os/mutex.h"
#include "plugin/attribute.h"
#include "triton/core/nereid_backend.h"

#include <stdbool.h>
#include <stdint.h>

struct dl;
struct message;
struct plugin_backend;
struct plugin_instance;
struct request;

/* The functions that the library exports; only execute is required. */
struct backend_entries {
    TRITONSERVER_Error *(*initialize)(TRITONBACKEND_Backend *);
    TRITONSERVER_Error *(*finalize)(TRITONBACKEND_Backend *);
    TRITONSERVER_Error *(*attribute)(TRITONBACKEND_Backend *, TRITONBACKEND_BackendAttribute *);
    TRITONSERVER_Error *(*model_initialize)(TRITONBACKEND_Model *);
    TRITONSERVER_Error *(*model_finalize)(TRITONBACKEND_Model *);
    TRITONSERVER_Error *(*instance_initialize)(TRITONBACKEND_ModelInstance *);
    TRITONSERVER_Error *(*instance_finalize)(TRITONBACKEND_ModelInstance *);
    TRITONSERVER_Error *(*execute)(TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request **,
                                   uint32_t);
    bool (*instance_inline)(TRITONBACKEND_ModelInstance *); /* NULL = inline_ok decides */
    /* Execution in two halves, see nereid_backend.h; `bell` NULL = the backend has none of them. */
    int (*bell)(TRITONBACKEND_ModelInstance *);
    bool (*begin)(TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request **, uint32_t);
    enum nereid_progress (*look)(TRITONBACKEND_ModelInstance *);
    void (*finish)(TRITONBACKEND_ModelInstance *);
    /* Used instead of execute by backends that are part of the server. It gets the requests
     * themselves; contract as instance_execute. */
    struct err *(*run)(struct plugin_instance *, struct request **, size_t);
    /* Of a backend that runs in another process, for one model; NULL for all others. ready: it
     * can be asked now. retire: no new requests will come. leave: the model is gone, and the
     * backend with it. */
    bool (*ready)(const struct plugin_backend *b);
    void (*retire)(struct plugin_backend *b);
    void (*leave)(struct plugin_backend *b);
};

/* A backend that is part of the server. It is used if no library with its name is found. */
struct backend_builtin {
    const char *name;
    struct backend_entries entries;
};

struct plugin_backend {
    uint32_t magic;
    char *name;
    char *dir;  /* directory of the library; "" for a backend that is part of the server */
    char *path; /* path of the library; the backend's name if there is no library */
    struct dl *dl;
    struct backend_entries entries;
    bool inline_ok;     /* exports nereid_backend_inline_v1 != 0 */
    bool fills_outputs; /* exports nereid_backend_fills_outputs_v1 != 0 */
    bool answers_last;  /* exports nereid_backend_answers_last_v1 != 0 */
    TRITONBACKEND_ExecutionPolicy execution_policy;
    void *state; /* owned by the backend */
    struct attribute attributes;
    struct message *config; /* {"cmdline":{...}} */
    bool ready;             /* guarded by the registry: Initialize has succeeded */
    bool loading;           /* guarded by the registry: a thread is loading it */
};

/* One setting of the command line for a backend; "" = for every backend. Strings are borrowed
 * and must outlive the registry. */
struct backend_setting {
    const char *backend;
    const char *key;
    const char *value;
};

struct backend_registry {
    struct mutex lock; /* rank REGISTRY; guards by_path and the flags of its backends */
    struct mutex_cond changed;
    struct map by_path; /* path -> plugin_backend */
    const char *directory;
    const struct backend_setting *settings;
    size_t setting_count;
    bool auto_complete;
};

/* backend_registry_init - directory: where the backends lie, each in a directory with its name.
 * Strings are borrowed. */
void backend_registry_init(struct backend_registry *r, const char *directory,
                           const struct backend_setting *settings, size_t setting_count,
                           bool auto_complete);

/* backend_registry_each - call fn with each loaded backend, under the registry's lock; fn must
 * not load backends. */
void backend_registry_each(struct backend_registry *r,
                           void (*fn)(void *arg, const struct plugin_backend *b), void *arg);

/* backend_registry_fini - finalize every backend; no model is left. */
void backend_registry_fini(struct backend_registry *r);

/* The backend that a model asks for; strings are borrowed. */
struct backend_wanted {
    const char *name;
    const char *runtime; /* file name of its library; "" = libtriton_NAME.so */
    const char *model;
    /* The library is searched in MODEL/VERSION/, MODEL/, then in the backend directory. */
    const char *model_dir;
    int64_t version;
};

/* backend_get - find the library of a backend and load it, or return the loaded one. Blocks.
 * wait     false: if another thread is loading it, *ret is NULL
 * errors   INVALID_ARG: "unable to find backend library for backend 'x', try specifying runtime
 *          on the model configuration."; the file that `runtime` names does not exist, or does
 *          not lie below its directory; those of the dynamic loader or of the backend's
 *          Initialize */
struct err *backend_get(struct backend_registry *r, const struct backend_wanted *w, bool wait,
                        struct plugin_backend **ret);

/* backend_find - check that backend_get would find a library, without loading it.
 * directory  the directory of the backends
 * errors     those of backend_get, without the errors of the loader and the library */
struct err *backend_find(const char *directory, const struct backend_wanted *w);

/* backend_say_failed - log that a function of a backend returned an error. model, instance:
 * names; NULL if the error concerns none. */
__attribute__((cold)) void backend_say_failed(const struct plugin_backend *b, const char *model,
                                              const char *instance, const char *entry,
                                              const struct err *e);

/* backend_init_remote - set up the stand-in of a backend that runs in another process; it is in
 * no registry. `entries` are copied.
 * backend_fini_remote - free its parts; the caller owns the struct. */
void backend_init_remote(struct plugin_backend *b, const struct backend_registry *r,
                         const char *name, const struct backend_entries *entries);
void backend_fini_remote(struct plugin_backend *b);

/* backend_setting_value - the value of a command line setting for a backend; NULL if it is not
 * set. */
const char *backend_setting_value(const struct backend_registry *r, const char *backend,
                                  const char *key);

/* backend_check - the object behind an ABI handle.
 * backend_is - true if the handle is one. */
struct plugin_backend *backend_check(void *handle);
bool backend_is(const void *handle);
