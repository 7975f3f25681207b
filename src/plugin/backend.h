#pragma once
/* Backends: the shared libraries libtriton_NAME.so that run models, and the table of those that
 * are loaded. The C ABI knows a backend as TRITONBACKEND_Backend. Loaded once a server and
 * library, never unmapped: runtimes leave threads behind that would run into unmapped code. */
#include "base/err.h"
#include "base/map.h"
#include "os/mutex.h"
#include "plugin/attribute.h"
#include "triton/core/tritonbackend.h"

#include <stdbool.h>
#include <stdint.h>

struct dl;
struct message;
struct plugin_backend;
struct plugin_instance;
struct request;

/* What the library exports; only execute is required. */
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
    bool (*instance_inline)(TRITONBACKEND_ModelInstance *); /* NULL = what inline_ok says */
    /* In place of execute, for backends that are part of the server: requests as they are;
     * contract as instance_execute. */
    struct err *(*run)(struct plugin_instance *, struct request **, size_t);
    /* Of a backend that another process has, for one model: whether it may be asked; that
     * nothing new will come; that the model is gone, and the backend with it. NULL for all
     * others. */
    bool (*ready)(const struct plugin_backend *b);
    void (*retire)(struct plugin_backend *b);
    void (*leave)(struct plugin_backend *b);
};

/* A backend that is part of the server; it serves where no library of its name is found. */
struct backend_builtin {
    const char *name;
    struct backend_entries entries;
};

struct plugin_backend {
    uint32_t magic;
    char *name;
    char *dir;  /* directory of the library; "" of one that is part of the server */
    char *path; /* the library; the backend's name where there is none */
    struct dl *dl;
    struct backend_entries entries;
    bool inline_ok;     /* exports nereid_backend_inline_v1 != 0 */
    bool fills_outputs; /* exports nereid_backend_fills_outputs_v1 != 0 */
    TRITONBACKEND_ExecutionPolicy execution_policy;
    void *state; /* the backend's own */
    struct attribute attributes;
    struct message *config; /* {"cmdline":{...}} */
    bool ready;             /* guarded by the registry: Initialize has succeeded */
    bool loading;           /* guarded by the registry: some thread is at it */
};

/* One setting of the command line for a backend; "" = for every backend. Borrowed, must outlive
 * the registry. */
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

/* backend_registry_init - directory: where backends lie, each in a directory of its name.
 * Strings are borrowed. */
void backend_registry_init(struct backend_registry *r, const char *directory,
                           const struct backend_setting *settings, size_t setting_count,
                           bool auto_complete);

/* backend_registry_each - call fn with each backend of a library that is loaded, under the
 * registry's lock: it may not load any. */
void backend_registry_each(struct backend_registry *r,
                           void (*fn)(void *arg, const struct plugin_backend *b), void *arg);

/* backend_registry_fini - finalize every backend; no model of one may be left. */
void backend_registry_fini(struct backend_registry *r);

/* The backend that a model names; strings are borrowed. */
struct backend_wanted {
    const char *name;
    const char *runtime; /* the file of its library; "" = libtriton_NAME.so */
    const char *model;
    /* the library may lie with the model: MODEL/VERSION/, MODEL/, then the backend directory */
    const char *model_dir;
    int64_t version;
};

/* backend_get - find the library of a backend and load it, or return the one that is loaded.
 * Blocks.
 * wait     false: where another thread is loading it, *ret is NULL
 * errors   INVALID_ARG: "unable to find backend library for backend 'x', try specifying runtime
 *          on the model configuration."; that the file that `runtime` names is nowhere, or not
 *          below the directory; what the loader or the backend's Initialize say */
struct err *backend_get(struct backend_registry *r, const struct backend_wanted *w, bool wait,
                        struct plugin_backend **ret);

/* backend_say_failed - log that an entry of a backend returned an error. model, instance: names,
 * NULL where it is not about one. */
__attribute__((cold)) void backend_say_failed(const struct plugin_backend *b, const char *model,
                                              const char *instance, const char *entry,
                                              const struct err *e);

/* backend_init_remote - the stand-in of a backend that another process has; no registry knows
 * it. entries are copied.
 * backend_fini_remote - the struct is the caller's. */
void backend_init_remote(struct plugin_backend *b, const struct backend_registry *r,
                         const char *name, const struct backend_entries *entries);
void backend_fini_remote(struct plugin_backend *b);

/* backend_setting_value - what the command line sets for a backend; NULL when nothing. */
const char *backend_setting_value(const struct backend_registry *r, const char *backend,
                                  const char *key);

/* backend_check - the object behind an ABI handle. backend_is - whether it is one. */
struct plugin_backend *backend_check(void *handle);
bool backend_is(const void *handle);
