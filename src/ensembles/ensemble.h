#pragma once
/* The data flow of an ensemble: which steps there are, and which tensors go from where to where.
 * Built once a version from its configuration, with indices in the place of names, and immutable
 * from then on.
 *
 * source  spec/model_config_proto.txt, ModelEnsembling (PB-137 to PB-148) */
#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;

/* An input or output of a step's model, and the tensor of the ensemble that it stands for. */
struct ensemble_port {
    const char *name;
    uint32_t tensor;
};

struct ensemble_step {
    const char *model;
    const char *space; /* which of the models of that name: see serve/table.h */
    int64_t version;   /* -1 = the latest */
    struct ensemble_port *inputs;
    uint32_t input_count;
    struct ensemble_port *outputs;
    const char **output_names; /* of outputs, in their order: what the step asks its model for */
    uint32_t output_count;
};

struct ensemble_tensor {
    const char *name;
    uint32_t maker;  /* the step that makes it; ENSEMBLE_NONE: an input of the ensemble */
    uint32_t *users; /* steps that need it, once for each of their inputs that it feeds */
    uint32_t user_count;
};

#define ENSEMBLE_NONE UINT32_MAX

struct ensemble {
    struct ensemble_step *steps;
    uint32_t step_count;
    struct ensemble_tensor *tensors;
    uint32_t tensor_count;
    uint32_t *inputs; /* the tensor of each input of the configuration */
    uint32_t input_count;
    uint32_t *outputs; /* the tensor of each output of the configuration */
    uint32_t output_count;
    /* requests of a step under way at a time, all requests of the ensemble together; 0 = no
     * limit */
    uint32_t max_inflight;
    /* When every output is wanted: */
    bool *all_needed;   /* of each step: whether it is run */
    uint32_t *all_uses; /* of each tensor: users that are run, and 1 more for an output */
};

/* ensemble_new - proto passed config_check_model; its strings are borrowed for as long as the
 * ensemble lives. Never NULL. */
struct ensemble *ensemble_new(const struct Inference__ModelConfig *proto);
void ensemble_free(struct ensemble *en);

/* ensemble_need - what has to be done for some outputs.
 * wanted      of each output
 * ret_needed  of each step: whether it makes a wanted output, or something that such a step needs
 * ret_uses    of each tensor: users that are needed, and 1 more for a wanted output */
void ensemble_need(const struct ensemble *en, const bool *wanted, bool *ret_needed,
                   uint32_t *ret_uses);
