#pragma once
/* One version of a model as its backend knows it: the TRITONBACKEND_Model of the C ABI. */
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
    char *dir;    /* the model's directory, which holds the version's */
    void *server; /* the TRITONSERVER_Server that the ABI gives out; borrowed, may be NULL */
    struct Inference__ModelConfig *proto; /* owned; what the backend may still complete */
    struct mutex lock;                    /* rank LEAF; guards published */
    struct model_config *published;       /* a reference; NULL while proto is in force */
    bool auto_complete;                   /* the backend shall fill in what is missing */
    bool begun; /* it was initialized, be it in vain: it will be finalized, as in the reference */
    bool initialized;
    struct batch_strategy *strategy; /* owned; NULL = it has none */
    void *state;                     /* the backend's own */
    struct list living;              /* see plugin/offender.h */
    struct usage usage;              /* memory outside its instances, as the backend reports it */
};

/* model_new - takes proto over. */
struct plugin_model *model_new(struct plugin_backend *backend, const char *name, int64_t version,
                               const char *dir, struct Inference__ModelConfig *proto,
                               bool auto_complete, void *server);

/* model_initialize - let the backend check and complete the model; proto may be another one
 * afterwards. Blocks.
 * errors  the backend's own */
struct err *model_initialize(struct plugin_model *m);

/* model_print_config - what is in force, as JSON; the caller's (mem_free). Any thread. */
char *model_print_config(struct plugin_model *m, size_t *ret_len);

/* model_set_config - replace the configuration while ModelInitialize runs; proto is taken over,
 * also on error.
 * errors  INVALID_ARG outside of ModelInitialize */
struct err *model_set_config(struct plugin_model *m, struct Inference__ModelConfig *proto);

/* model_publish_config - the configuration that is in force from now on; proto is gone. Takes a
 * reference. Any thread. */
void model_publish_config(struct plugin_model *m, struct model_config *published);

/* model_ready - whether its backend is there: one in a process of its own may be starting anew.
 * NULL is ready. Any thread. */
bool model_ready(const struct plugin_model *m);

/* model_retire - nothing new will come; requests under way go on. NULL is fine. Any thread,
 * never blocks. */
void model_retire(const struct plugin_model *m);

/* model_free - finalize the backend's side; its instances are gone. NULL is fine. Blocks. */
void model_free(struct plugin_model *m);

/* model_check - the object behind an ABI handle. model_is - whether it is one. */
struct plugin_model *model_check(void *handle);
bool model_is(const void *handle);
