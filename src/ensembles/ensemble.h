#pragma once
/* The plan of an ensemble: its steps, and which tensors go from which step to which. It is built
 * once per version from the configuration, uses indices instead of names, and is immutable.
 *
 * source  spec/model_config_proto.txt, ModelEnsembling (PB-137 to PB-148) */
#include <stdbool.h>
#include <stdint.h>

struct Inference__ModelConfig;

/* An input or output of a step's model, and the ensemble's tensor that it is mapped to. */
struct ensemble_port {
    const char *name;
    uint32_t tensor;
};

struct ensemble_step {
    const char *model;
    const char *space; /* the space that the model is looked up in, see serve/table.h */
    int64_t version;   /* -1 = the latest */
    struct ensemble_port *inputs;
    uint32_t input_count;
    struct ensemble_port *outputs;
    /* the names of `outputs`, in their order; the step requests these from its model */
    const char **output_names;
    uint32_t output_count;
};

struct ensemble_tensor {
    const char *name;
    uint32_t maker;  /* the step that produces it; ENSEMBLE_NONE: an input of the ensemble */
    uint32_t *users; /* the steps that read it, once for each of their inputs that it feeds */
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
    /* how many requests of a step may be in flight, counted over all requests of the ensemble; 0
     * = no limit */
    uint32_t max_inflight;
    /* The results of ensemble_need if every output is wanted: */
    bool *all_needed;   /* per step: the step must run */
    uint32_t *all_uses; /* per tensor: number of running users, plus 1 for an output */
};

/* ensemble_new - proto has passed config_check_model; its strings are borrowed as long as the
 * ensemble lives. Never NULL. */
struct ensemble *ensemble_new(const struct Inference__ModelConfig *proto);
void ensemble_free(struct ensemble *en);

/* ensemble_need - find out which steps must run for some of the outputs.
 * wanted      per output
 * ret_needed  per step: it produces a wanted output, or a tensor that a needed step reads
 * ret_uses    per tensor: number of needed users, plus 1 for a wanted output */
void ensemble_need(const struct ensemble *en, const bool *wanted, bool *ret_needed,
                   uint32_t *ret_uses);
