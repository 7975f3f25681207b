#pragma once
/* Warm-up: requests that the server makes itself and runs on every new instance before the
 * instance gets other requests. The data is made once per version, for all instances.
 * source  spec/model_configuration.txt, Model Warmup; spec/model_config_proto.txt, ModelWarmup */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct model_config;
struct plugin_instance;
struct serve_version;
struct warmup;

/* warmup_new - make the data of all warm-up samples of the version's configuration. Blocks.
 * ret     NULL if there are no samples
 * errors  NOT_FOUND or INVALID_ARG for a file that does not exist, leads out of MODEL/warmup, or
 *         is too short; UNAVAILABLE without memory */
struct err *warmup_new(const struct serve_version *v, struct warmup **ret);

/* warmup_check - the error that warmup_new or warmup_run would have with one sample before the
 * backend sees it. Blocks.
 * sample    its index in the configuration
 * complete  false = the backend may add inputs, so only the data is looked at */
struct err *warmup_check(const struct model_config *config, const char *model_dir, size_t sample,
                         bool complete);

/* warmup_run - run all samples in order on an instance that gets no other requests yet. Returns
 * when each request was answered and released. The statistics count them as any request. Blocks.
 * w       NULL = nothing to do
 * errors  INVALID_ARG "failed to run warmup sample 'x': ...; ", or the error of the sample's own
 *         request */
struct err *warmup_run(const struct warmup *w, struct serve_version *v, struct plugin_instance *i);

/* warmup_free - NULL is fine. */
void warmup_free(struct warmup *w);
