#pragma once

#include "model.h"

/* names_resolve - find out which argument or result each tensor of the configuration is. An
 * input has the name of an argument, or NAME__INDEX. An output has the name of a key, if the
 * model returns a dictionary, or NAME__INDEX.
 * errors   INVALID_ARG for a name of another form, two inputs for one argument, or arguments
 *          or elements of lists without an input; INTERNAL, in the reference's words, for data
 *          types that PyTorch does not have */
TRITONSERVER_Error *names_resolve(struct model *model);

/* names_free - free what names_resolve made. */
void names_free(struct model *model);
