#pragma once
/* A new number of instances for a version that serves. Private to repo/. */
#include "base/err.h"

struct Inference__ModelConfig;
struct instances_draft;
struct serve_version;

/* resize_prepare - make the instances that a configuration asks for and that a version lacks.
 * Blocks.
 * written  differs from what the version was loaded with by instance groups or version policy
 *          alone; borrowed
 * ret      what to commit (serve/instances.h)
 * errors   what is wrong with the groups, or what the backend says; nothing was changed then */
struct err *resize_prepare(struct serve_version *v, const struct Inference__ModelConfig *written,
                           struct instances_draft **ret);
