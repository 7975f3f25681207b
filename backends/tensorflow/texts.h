#pragma once

#include "../common/binput.h"
#include "../common/boutput.h"
#include "tf_api.h"

/* Tensors of strings; the protocol sends them one after the other, each after its length. */

/* texts_give - make a tensor from the strings of all items. Items with malformed contents get an
 * error, and empty strings.
 * ret_tensor  owned by the caller: TF_DeleteTensor
 * errors      for the whole run */
TRITONSERVER_Error *texts_give(struct brun *run, const struct binput *input,
                               TF_Tensor **ret_tensor);

/* texts_one - make a tensor of one string, a scalar.
 * returns  owned by the caller: TF_DeleteTensor; NULL if memory ran out */
TF_Tensor *texts_one(const char *text);

/* texts_scatter - give each item that wants a tensor its rows.
 * result  its data are TF_TString
 * errors  for the whole run: the result has another number of rows */
TRITONSERVER_Error *texts_scatter(struct brun *run, const struct boutput *output,
                                  const struct boutput_tensor *result);
