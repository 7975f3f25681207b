#pragma once
/* Instance groups: fills them in, and checks them for this machine. */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Inference__ModelConfig;

/* An instance group that the backend prefers
 * (TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup). */
struct config_groups_wish {
    int kind; /* a value of ModelInstanceGroup.Kind */
    int32_t count;
    const int32_t *gpus;
    size_t gpu_count;
};

/* The GPUs of the machine and the backend's wishes; borrowed for the call. All zeros: no GPU, no
 * wishes. */
struct config_groups_machine {
    const int32_t *gpus; /* ids of the GPUs that may be used */
    size_t gpu_count;
    double min_compute_capability;           /* for messages only */
    const struct config_groups_wish *wishes; /* in order of preference */
    size_t wish_count;
};

/* config_groups_fill - complete the instance groups: one group if there is none, names, kinds,
 * counts and GPUs. KIND_AUTO becomes KIND_GPU if every GPU that it lists exists and the backend
 * has no wishes, or one for GPUs; else KIND_CPU. Ensembles have no groups.
 * machine  NULL = all zero
 * source   spec/model_config_proto.txt, ModelInstanceGroup; X-20 */
void config_groups_fill(struct Inference__ModelConfig *proto,
                        const struct config_groups_machine *machine);

/* config_groups_ask - true if the GPUs of the machine matter for these groups: otherwise nobody
 * need look for them.
 * wishes  the backend's */
bool config_groups_ask(const struct Inference__ModelConfig *proto,
                       const struct config_groups_wish *wishes, size_t wish_count);

/* config_groups_check - the first broken rule of the groups; call it after config_groups_fill.
 * errors  INVALID_ARG, worded as the reference does */
struct err *config_groups_check(const struct Inference__ModelConfig *proto,
                                const struct config_groups_machine *machine);
