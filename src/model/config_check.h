#pragma once
/* The rules that a configuration must keep, as far as the message alone shows them. */
#include "base/err.h"

#include <stdbool.h>

struct Inference__ModelConfig;

/* Which rules apply. */
enum config_check_stage {
    CONFIG_CHECK_PARTIAL, /* before the backend completed it: inputs and outputs may be missing */
    CONFIG_CHECK_FULL,    /* what is about to be served */
};

/* The most dimensions of an input, an output or a reshape. */
#define CONFIG_CHECK_MAX_RANK 64u

/* config_check_message - the first rule that is broken of those that hold for the model as a
 * whole: with such a message no version is begun, as in the reference.
 * complete    also the rules of inputs and outputs
 * the rest    as config_check_model */
struct err *config_check_message(const struct Inference__ModelConfig *proto, const char *model_name,
                                 bool complete);

/* config_check_model - the first rule that the message breaks, of all of them. Groups:
 * config_groups_check.
 * proto       after config_fill_defaults
 * model_name  the directory's name, which the message's must equal; NULL = not compared
 * returns     NULL when every rule holds; else a message that names the model, the field and
 *             what it must be
 * errors      INVALID_ARG
 * source      spec/model_configuration.txt, spec/model_config_proto.txt; the wording is the
 *             reference's where it has one */
struct err *config_check_model(const struct Inference__ModelConfig *proto, const char *model_name,
                               enum config_check_stage stage);
