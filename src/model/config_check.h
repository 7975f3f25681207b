#pragma once
/* The rules of a configuration that can be checked without the backend and the machine. */
#include "base/err.h"

#include <stdbool.h>

struct Inference__ModelConfig;

/* Which rules apply. */
enum config_check_stage {
    /* before the backend has completed it: inputs and outputs may be missing */
    CONFIG_CHECK_PARTIAL,
    CONFIG_CHECK_FULL, /* ready to be served */
};

/* The most dimensions of an input, an output or a reshape. */
#define CONFIG_CHECK_MAX_RANK 64u

/* config_check_message - the first broken rule of those that concern the model as a whole. As in
 * the reference, no version is begun with such a message.
 * complete    check the rules of inputs and outputs too
 * the rest    as config_check_model */
struct err *config_check_message(const struct Inference__ModelConfig *proto, const char *model_name,
                                 bool complete);

/* config_check_model - the first broken rule of all. For instance groups see
 * config_groups_check.
 * proto       after config_fill_defaults
 * model_name  the directory's name, which must equal the message's name; NULL = not compared
 * returns     NULL if all rules are kept; else a message that names the model, the field and
 *             what is expected
 * errors      INVALID_ARG
 * source      spec/model_configuration.txt, spec/model_config_proto.txt; the wording is the
 *             reference's where it has one */
struct err *config_check_model(const struct Inference__ModelConfig *proto, const char *model_name,
                               enum config_check_stage stage);
