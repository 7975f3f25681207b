#include "model/config_unused.h"

#include "proto/model_config.pb-c.h"

#include <stdbool.h>
#include <string.h>

static void name_unused(struct strbuf *out, bool given, const char *name)
{
    if (given)
        strbuf_printf(out, "%s%s", *strbuf_str(out) ? ", " : "", name);
}

/* The backend tensorrt takes more of them than others. */
static bool is_for_tensorrt(const struct Inference__ModelConfig *proto)
{
    return strcmp(proto->backend, "tensorrt") == 0 || strcmp(proto->platform, "tensorrt_plan") == 0;
}

void config_unused(const struct Inference__ModelConfig *proto, struct strbuf *out)
{
    const Inference__ModelOptimizationPolicy *o = proto->optimization;
    const bool tensorrt = is_for_tensorrt(proto);
    name_unused(out, proto->n_cc_model_filenames > 0 && !tensorrt, "cc_model_filenames");
    if (!o)
        return;
    name_unused(out, o->priority != 0 && !tensorrt, "optimization.priority");
    name_unused(out, o->cuda && !tensorrt, "optimization.cuda");
    name_unused(out, o->input_pinned_memory, "optimization.input_pinned_memory");
    name_unused(out, o->output_pinned_memory, "optimization.output_pinned_memory");
    name_unused(out, o->gather_kernel_buffer_threshold != 0,
                "optimization.gather_kernel_buffer_threshold");
    name_unused(out, o->eager_batching, "optimization.eager_batching");
}
