#include "repo/load_strategy.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "os/file.h"
#include "proto/model_config.pb-c.h"

#include <inttypes.h>
#include <string.h>

#define PARAMETER "TRITON_BATCH_STRATEGY_PATH"
#define LIBRARY   "batchstrategy.so"

/* The path that the parameter names; NULL = it is not set. */
static const char *path_asked_for(const struct Inference__ModelConfig *proto)
{
    for (size_t i = 0; i < proto->n_parameters; i++)
        if (strcmp(proto->parameters[i]->key, PARAMETER) == 0)
            return proto->parameters[i]->value ? proto->parameters[i]->value->string_value : "";
    return NULL;
}

static struct err *check_place(const char *dir)
{
    char *path = file_join(dir, LIBRARY);
    struct err *e = NULL;
    if (file_exists(path))
        e = err_new(STATUS_UNSUPPORTED,
                    "'%s' is a custom batching strategy, which this server cannot use: move it "
                    "away to have the model batched by its dynamic_batching settings",
                    path);
    mem_free(path);
    return e;
}

struct err *load_strategy_check(const struct Inference__ModelConfig *proto, const char *model_dir,
                                int64_t number, const char *backend_dir)
{
    bool sequences = proto->scheduling_choice_case ==
                     INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING;
    const char *path = path_asked_for(proto);
    if (path && sequences)
        return err_new(STATUS_INVALID_ARG, PARAMETER
                       " cannot be specified with sequence batcher, using default batching "
                       "strategy");
    if (path && !file_exists(path))
        return err_new(STATUS_NOT_FOUND, "Batching library path not found: %s", path);
    if (path)
        return err_new(STATUS_UNSUPPORTED,
                       "parameter " PARAMETER " asks for a custom batching strategy, which this "
                       "server cannot use: remove it to have the model batched by its "
                       "dynamic_batching settings");
    if (sequences)
        return NULL;
    struct strbuf version = STRBUF_INIT;
    strbuf_printf(&version, "%s/%" PRId64, model_dir, number);
    struct err *e = check_place(strbuf_str(&version));
    if (!e)
        e = check_place(model_dir);
    if (!e && *backend_dir)
        e = check_place(backend_dir);
    strbuf_fini(&version);
    return e;
}
