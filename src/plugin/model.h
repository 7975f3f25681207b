#pragma once
/* One version of a model as its backend sees it: the TRITONBACKEND_Model of the C ABI. */
#include "base/err.h"
#include "base/list.h"
#include "os/mutex.h"
#include "plugin/usage.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct batch_strategy;
struct model_config;
struct plugin_backend;

struct plugin_model {
    uint32_t magic;
    struct plugin_backend *backend;
    char *name;
    int64_t version;
    char *title;  /* "model 'NAME', version N", for crash reports */
    char *dir;    /* the model's directory, which contains the version's directory */
    void *server; /* the TRITONSERVER_Server of the ABI; borrowed, may be NULL */
    struct Inference__ModelConfig *proto; /* owned; the backend may complete it */
    struct mutex lock;                    /* rank LEAF; guards published */
    struct model_config *published;       /* a reference; NULL while proto is in use */
    bool auto_complete;                   /* the backend shall complete the configuration */
    /* its Initialize was called, so Finalize will be called, even if it failed (as in the
     * reference) */
    bool begun;
    bool initialized;
    struct batch_strategy *strategy; /* owned; NULL = it has none */
    void *state;                     /* owned by the backend */
    struct list living;              /* see plugin/offender.h */
    struct usage usage;              /* memory outside its instances, as reported by the backend */
};

/* model_new - the model owns proto. */
struct plugin_model *model_new(struct plugin_backend *backend, const char *name, int64_t version,
                               const char *dir, struct Inference__ModelConfig *proto,
                               bool auto_complete, void *server);

/* model_title - the title of a version of a model; the caller frees it (mem_free). */
char *model_title(const char *name, int64_t version);

/* model_initialize - let the backend check and complete the model; proto may be replaced.
 * Blocks.
 * errors  the backend's own */
struct err *model_initialize(struct plugin_model *m);

/* model_print_config - the current configuration as JSON; the caller frees it (mem_free). Any
 * thread. */
char *model_print_config(struct plugin_model *m, size_t *ret_len);

/* model_set_config - replace the configuration while ModelInitialize runs; proto is owned by the
 * model, and freed on error.
 * errors  INVALID_ARG outside ModelInitialize */
struct err *model_set_config(struct plugin_model *m, struct Inference__ModelConfig *proto);

/* model_publish_config - use this configuration from now on; proto is freed. Takes a reference.
 * Any thread. */
void model_publish_config(struct plugin_model *m, struct model_config *published);

/* model_ready - true if its backend can be asked. A backend in its own process may be
 * restarting. NULL is ready. Any thread. */
bool model_ready(const struct plugin_model *m);

/* model_retire - no new requests will come; those in flight go on. NULL is fine. Any thread,
 * never blocks. */
void model_retire(const struct plugin_model *m);

/* model_free - finalize the model in the backend; no instance is left. NULL is fine. Blocks. */
void model_free(struct plugin_model *m);

/* model_check - the object behind an ABI handle.
 * model_is - true if the handle is one. */
struct plugin_model *model_check(void *handle);
bool model_is(const void *handle);
