#pragma once
/* Warm-up: requests that the server makes itself and runs on every new instance before it gets
 * others. Data is made once for a version, whatever the number of its instances.
 * source  spec/model_configuration.txt, Model Warmup; spec/model_config_proto.txt, ModelWarmup */
#include "base/err.h"

struct plugin_instance;
struct serve_version;
struct warmup;

/* warmup_new - make the data of all samples of the version's configuration. Blocks.
 * ret     NULL when there are none
 * errors  NOT_FOUND or INVALID_ARG for a file that is not there, leads out of MODEL/warmup, or
 *         is too short; UNAVAILABLE without memory */
struct err *warmup_new(const struct serve_version *v, struct warmup **ret);

/* warmup_run - run all samples in order on an instance that gets no other requests yet. Returns
 * when each request was answered and released. Counted in the statistics like any other request.
 * Blocks.
 * w       NULL = nothing to do
 * errors  INVALID_ARG "failed to run warmup sample 'x': ...; ", or what is wrong with the sample
 *         as a request */
struct err *warmup_run(const struct warmup *w, struct serve_version *v, struct plugin_instance *i);

/* warmup_free - NULL is fine. */
void warmup_free(struct warmup *w);
