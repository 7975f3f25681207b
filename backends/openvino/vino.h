#pragma once

#include <openvino/c/openvino.h>

#include "triton/core/tritonbackend.h"

/* OpenVINO: what all models share. Read-only once vino_new has returned. */

struct vino {
    char *folder; /* where the backend's own files lie */
    ov_core_t *core;
    int processors;
    int64_t default_max_batch_size;
};

/* vino_new - read the backend's settings and start the runtime.
 * ret_vino  owned by the caller: vino_free
 * errors    INVALID_ARG for an invalid setting; INTERNAL if the runtime does not start */
TRITONSERVER_Error *vino_new(TRITONBACKEND_Backend *backend, struct vino **ret_vino);

/* vino_free - NULL is allowed; no model may be left. */
void vino_free(struct vino *vino);

/* vino_err - make an error from a status of OpenVINO. The runtime keeps one last error text for
 * the whole process: if two models fail at the same moment, one may get the other's text.
 * doing    what was tried, such as "reading model"
 * returns  NULL for OK, else "openvino error in DOING : TEXT", INTERNAL */
TRITONSERVER_Error *vino_err(ov_status_e status, const char *doing);

/* vino_datatype - the data type for a type of OpenVINO.
 * returns  TRITONSERVER_TYPE_INVALID if there is none; also for strings */
TRITONSERVER_DataType vino_datatype(ov_element_type_e element);

/* vino_element - the reverse.
 * returns  DYNAMIC if there is none */
ov_element_type_e vino_element(TRITONSERVER_DataType datatype);
