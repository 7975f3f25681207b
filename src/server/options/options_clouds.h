#pragma once
/* Options of the interfaces that machine learning services of clouds call: SageMaker's and Vertex
 * AI's. Both services tell a container the rest in its environment. */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct options;
struct options_row;

#define OPTIONS_SAGEMAKER_NO_MODEL "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"

struct options_port_range {
    bool given;
    uint16_t first;
    uint16_t last;
};

struct options_sagemaker {
    bool allow;
    uint16_t port;
    struct options_port_range others; /* where all other front ends have to listen */
    const char *models;               /* the directory below which models to load must lie */
    const char *ping;                 /* what /ping tells: "live"; anything else = ready */
    const char *model;                /* the model of /invocations */
    const char *inference;            /* what /invocations does: infer, generate, generate_stream */
};

struct options_vertex {
    bool allow;
    uint16_t port;
    const char *model;   /* the model of predictions; NULL = the only one that is loaded */
    const char *predict; /* the paths; "" = not given */
    const char *health;
};

/* options_clouds_environment - set what the environment says: SAGEMAKER_TRITON_..., AIP_....
 * Called before other options are read: those win.
 * errors  INVALID_ARG that names the variable, the value and the allowed values */
struct err *options_clouds_environment(struct options *o);

/* options_clouds_settle - all options were read: AIP_STORAGE_URI is the repository where none was
 * given.
 * errors  INVALID_ARG: an interface is allowed that lacks what it needs */
struct err *options_clouds_settle(struct options *o);

/* options_clouds_range - set a range of ports.
 * errors  INVALID_ARG that names the option, the value and the allowed values */
struct err *options_clouds_range(const struct options_row *row, const char *value,
                                 struct options_port_range *field);
