#pragma once

#include "../common/binput.h"
#include "../common/boutput.h"
#include "libtorch.h"

/* Lists of strings; the protocol sends them one after the other, each after its length. */

/* texts_give - append the strings of all items to an argument. Items with malformed contents get
 * an error, and empty strings.
 * errors   for the whole run */
TRITONSERVER_Error *texts_give(struct brun *run, const struct binput *input,
                               struct libtorch_call *call, size_t argument);

/* texts_scatter - give each item that wants a result its part.
 * errors   for the whole run: the result has another number of rows */
TRITONSERVER_Error *texts_scatter(struct brun *run, const struct boutput *output,
                                  const struct libtorch_call *call, size_t index, size_t count);
