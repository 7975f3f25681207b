#pragma once

#include "model.h"

/* names_resolve - find out which argument or result each tensor of the configuration is. An
 * input has the name of an argument, or is NAME__INDEX; an output is NAME__INDEX, or has the
 * name of a key where the model gives back a dictionary.
 * errors   INVALID_ARG for a name that says neither, for two inputs of one argument, for
 *          arguments without input; INTERNAL, in the words of the reference, for data types that
 *          PyTorch does not have */
TRITONSERVER_Error *names_resolve(struct model *model);

/* names_free - free what names_resolve made. */
void names_free(struct model *model);
