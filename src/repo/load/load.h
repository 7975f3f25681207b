#pragma once
/* Loads one version of a model: configuration, backend, model, instances. */
#include "base/err.h"
#include "repo/load/load_code.h"

#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;
struct attribute;
struct backend_registry;
struct config_groups_machine;
struct features;
struct host_policies;
struct loop;
struct serve_table;
struct serve_version;

/* What loading needs from the server; borrowed. */
struct load_context {
    struct backend_registry *backends;
    /* where ensembles find the models of their steps; set by repo_new */
    struct serve_table *table;
    struct features *features;            /* make the schedulers of versions and their wrappers */
    const struct host_policies *policies; /* NULL = none */
    /* configs/<name>.pbtxt is read instead if it exists; NULL = none */
    const char *config_name;
    bool auto_complete; /* settings that the configuration leaves out are derived from the model */
    bool allow_inline;
    struct loop *house;       /* watches timeouts of queued requests */
    void *server;             /* the server of the C ABI, for TRITONBACKEND_ModelServer */
    bool is_ours;             /* its directory was made for the files of a load request */
    enum load_code_from from; /* which may not bring any code */
};

/* load_read_config - read the configuration in a model's directory, as its author wrote it. It
 * is empty if there is no config.pbtxt and the context allows completion.
 * ret     owned by the caller (config_free_proto)
 * errors  INVALID_ARG: missing, or not a valid configuration, with file, line and column */
struct err *load_read_config(const struct load_context *c, const char *model_dir,
                             struct Inference__ModelConfig **ret);

/* load_check_config - check a configuration before any version is begun; NULL if it is valid.
 * number  the version whose files show the backend if `written` names none; 0 = there is none */
struct err *load_check_config(const struct load_context *c, const char *name, const char *model_dir,
                              int64_t number, const struct Inference__ModelConfig *written);

/* load_needs_files - true if load_check_config looks at the files of the version. */
bool load_needs_files(const struct Inference__ModelConfig *written);

/* load_machine - the GPUs of this machine and the backend's wishes, for the groups of a
 * configuration. GPUs are looked for only if the groups can be on one.
 * said  what the backend says about itself; NULL = nothing */
void load_machine(const struct Inference__ModelConfig *proto, const struct attribute *said,
                  struct config_groups_machine *ret);

/* load_version - make a version ready to serve. Blocks as long as the backend takes.
 * proto   as the author wrote it; borrowed
 * wait    false: if another thread is loading its backend, *ret is NULL and nothing was done
 * ret     ready, not published
 * errors  of the configuration or of the backend */
struct err *load_version(const struct load_context *c, const char *name, const char *model_dir,
                         int64_t number, const struct Inference__ModelConfig *proto, bool wait,
                         struct serve_version **ret);
