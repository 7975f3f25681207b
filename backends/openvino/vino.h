#pragma once

#include <openvino/c/openvino.h>

#include "triton/core/tritonbackend.h"

/* OpenVINO itself: what all models share. Read-only once vino_new has returned. */

struct vino {
    char *folder; /* where the backend's own files lie */
    ov_core_t *core;
    int processors;
    int64_t default_max_batch_size;
};

/* vino_new - read the backend's settings and start the runtime.
 * ret_vino  owned by the caller: vino_free
 * errors    INVALID_ARG for a setting that does not parse; INTERNAL when the runtime does not
 *           start */
TRITONSERVER_Error *vino_new(TRITONBACKEND_Backend *backend, struct vino **ret_vino);

/* vino_free - NULL is allowed; no model may be left. */
void vino_free(struct vino *vino);

/* vino_err - turn a status of OpenVINO into an error. The runtime keeps the text of its last
 * failure for the whole process: of two models that fail in the same moment, one may get the
 * other's.
 * doing    what was tried, as in "reading model"
 * returns  NULL for OK, else "openvino error in DOING : TEXT", INTERNAL */
TRITONSERVER_Error *vino_err(ov_status_e status, const char *doing);

/* vino_datatype - the data type that a type of OpenVINO stands for.
 * returns  TRITONSERVER_TYPE_INVALID when there is none; strings are none */
TRITONSERVER_DataType vino_datatype(ov_element_type_e element);

/* vino_element - the other way round.
 * returns  DYNAMIC when there is none */
ov_element_type_e vino_element(TRITONSERVER_DataType datatype);
