#pragma once

#include "../common/binput.h"
#include "../common/boutput.h"
#include "tf_api.h"

/* Tensors of strings, which the protocol sends one after the other, each behind its length. */

/* texts_give - make a tensor of the strings of all items. Items whose contents are malformed get
 * an error, and empty strings.
 * ret_tensor  owned by the caller: TF_DeleteTensor
 * errors      for the whole run */
TRITONSERVER_Error *texts_give(struct brun *run, const struct binput *input,
                               TF_Tensor **ret_tensor);

/* texts_scatter - give each item that wants it its rows of a tensor.
 * result  its data is TF_TStrings
 * errors  for the whole run: the result has another number of rows */
TRITONSERVER_Error *texts_scatter(struct brun *run, const struct boutput *output,
                                  const struct boutput_tensor *result);
