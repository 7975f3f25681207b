#pragma once
/* Loading one version of a model: configuration, backend, model, instances. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct backend_registry;
struct features;
struct host_policies;
struct loop;
struct serve_table;
struct serve_version;

/* What loading needs of the server; borrowed. */
struct load_context {
    struct backend_registry *backends;
    /* where ensembles find the models of their steps; repo_new sets it */
    struct serve_table *table;
    struct features *features;            /* what schedules versions, and stands around that */
    const struct host_policies *policies; /* NULL = none */
    /* configs/<name>.pbtxt is read instead, where it is there; NULL = none */
    const char *config_name;
    bool auto_complete; /* what the configuration leaves out is filled in from the model */
    bool allow_inline;
    struct loop *house; /* watches time-outs of queued requests */
    void *server;       /* what TRITONBACKEND_ModelServer gives out */
    bool is_ours;       /* its directory was made for what a load request brought */
    bool is_cloud;      /* the model lies in a store: it may not bring code */
};

/* load_read_config - the configuration of a model directory as its author wrote it; an empty one
 * when there is no config.pbtxt and the context says that it may be completed.
 * ret     the caller's (config_free_proto)
 * errors  INVALID_ARG: missing, or not readable as a configuration, with file, line and column */
struct err *load_read_config(const struct load_context *c, const char *model_dir,
                             struct Inference__ModelConfig **ret);

/* load_check_config - what is wrong with a configuration before any version is begun; NULL when
 * nothing is.
 * number  the version whose files tell the backend where `written` does not; 0 = there is none */
struct err *load_check_config(const struct load_context *c, const char *name, const char *model_dir,
                              int64_t number, const struct Inference__ModelConfig *written);

/* load_needs_files - whether load_check_config looks at the files of the version. */
bool load_needs_files(const struct Inference__ModelConfig *written);

/* load_version - make a version ready to serve. Blocks for as long as the backend takes.
 * proto   as written; borrowed
 * wait    false: where another thread is loading its backend, *ret is NULL, and nothing was done
 * ret     ready, not published
 * errors  what is wrong with the configuration, or what the backend says */
struct err *load_version(const struct load_context *c, const char *name, const char *model_dir,
                         int64_t number, const struct Inference__ModelConfig *proto, bool wait,
                         struct serve_version **ret);
