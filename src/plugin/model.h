#pragma once
/* One version of a model as its backend knows it: the TRITONBACKEND_Model of the C ABI. */
#include "base/err.h"
#include "plugin/usage.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct plugin_backend;

struct plugin_model {
    uint32_t magic;
    struct plugin_backend *backend;
    char *name;
    int64_t version;
    char *dir;    /* the model's directory, which holds the version's */
    void *server; /* the TRITONSERVER_Server that the ABI gives out; borrowed, may be NULL */
    struct Inference__ModelConfig *proto;           /* owned; what the backend may still complete */
    const struct Inference__ModelConfig *published; /* borrowed; NULL while proto is in force */
    bool auto_complete;                             /* the backend shall fill in what is missing */
    bool initialized;
    void *state;        /* the backend's own */
    struct usage usage; /* memory outside its instances, as the backend reports it */
};

/* model_new - takes proto over. */
struct plugin_model *model_new(struct plugin_backend *backend, const char *name, int64_t version,
                               const char *dir, struct Inference__ModelConfig *proto,
                               bool auto_complete, void *server);

/* model_initialize - let the backend check and complete the model; proto may be another one afterwards. Blocks.
 * errors  the backend's own */
struct err *model_initialize(struct plugin_model *m);

/* model_config_now - what is in force. */
const struct Inference__ModelConfig *model_config_now(const struct plugin_model *m);

/* model_set_config - replace the configuration while ModelInitialize runs; proto is taken over, also on error.
 * errors  INVALID_ARG outside of ModelInitialize */
struct err *model_set_config(struct plugin_model *m, struct Inference__ModelConfig *proto);

/* model_close_config - the configuration is complete: `published` takes proto's place, lent for as long as the model lives. */
void model_close_config(struct plugin_model *m, const struct Inference__ModelConfig *published);

/* model_free - finalize the backend's side; its instances are gone. NULL is fine. Blocks. */
void model_free(struct plugin_model *m);

/* model_check - the object behind an ABI handle. model_is - whether it is one. */
struct plugin_model *model_check(void *handle);
bool model_is(const void *handle);
