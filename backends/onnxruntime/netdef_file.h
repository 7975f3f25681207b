#pragma once

#include "model.h"

/* netdef_file_open - make the session of a model of the platform caffe2_netdef: of model.netdef, or
 * the file that the configuration names, and of init_model.netdef beside it where there is one,
 * translated to ONNX.
 * model    its configuration is read; gets the session
 * options  borrowed
 * errors   what the files lack, or what of them is not translated, naming the model and the file */
TRITONSERVER_Error *netdef_file_open(struct model *model, const OrtSessionOptions *options);
