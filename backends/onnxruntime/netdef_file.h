#pragma once

#include "model.h"

/* netdef_file_open - make the session of a model of the platform caffe2_netdef. It translates
 * model.netdef (or the file that the configuration names) to ONNX, with the weights of
 * init_model.netdef in the same directory if that file exists.
 * model    its configuration is read; it gets the session
 * options  borrowed
 * errors   the files are incomplete, or something in them is not supported; the error names the
 *          model and the file */
TRITONSERVER_Error *netdef_file_open(const struct model *model, const struct ort *ort,
                                     const OrtSessionOptions *options, OrtSession **ret_session);
