#include "repo/load_cloud.h"

#include "base/strbuf.h"
#include "os/file.h"
#include "proto/model_config.pb-c.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static bool has(const char *model_dir, int64_t version, const char *backend)
{
    struct strbuf in_model = STRBUF_INIT;
    struct strbuf in_version = STRBUF_INIT;
    strbuf_printf(&in_model, "%s/libtriton_%s.so", model_dir, backend);
    strbuf_printf(&in_version, "%s/%" PRId64 "/libtriton_%s.so", model_dir, version, backend);
    bool found = file_exists(strbuf_str(&in_model)) || file_exists(strbuf_str(&in_version));
    strbuf_fini(&in_version);
    strbuf_fini(&in_model);
    return found;
}

struct err *load_cloud_check(const struct Inference__ModelConfig *proto, const char *name,
                             const char *model_dir, int64_t version)
{
    bool custom = strcmp(proto->platform, "custom") == 0 || strcmp(proto->backend, "custom") == 0;
    if (!custom && !(*proto->backend && has(model_dir, version, proto->backend)))
        return NULL;
    return err_new(STATUS_UNSUPPORTED,
                   "model '%s': a custom backend is not loaded from a repository in cloud storage; "
                   "put it on the local file system",
                   name);
}
