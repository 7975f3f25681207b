#pragma once
/* Changes the number of instances of a serving version. Private to repo/. */
#include "base/err.h"

struct Inference__ModelConfig;
struct instances_draft;
struct serve_version;

/* resize_prepare - make the instances that a configuration asks for and a version lacks. Blocks.
 * written  differs from the configuration that the version was loaded with only in its instance
 *          groups or version policy; borrowed
 * ret      what to commit (serve/instances.h)
 * errors   of the groups or of the backend; nothing has changed then */
struct err *resize_prepare(struct serve_version *v, const struct Inference__ModelConfig *written,
                           struct instances_draft **ret);
