#pragma once

#include "triton/core/tritonbackend.h"

/* What --backend-config=python,NAME=VALUE says, under the names of the reference's backend. */
struct options {
    char *folder;        /* of the backend's files */
    char *backend;       /* a folder with the model.py of a backend that is written in Python; "" */
    char *region_prefix; /* of the names of the shared memory */
    uint64_t default_bytes, growth_bytes;
    int64_t stub_seconds;
    char *executable; /* the Python; NULL = python3 in the PATH */
};

/* options_new - read the backend's options.
 * ret_options  owned by the caller: options_free
 * errors       INVALID_ARG naming the option */
TRITONSERVER_Error *options_new(TRITONBACKEND_Backend *backend, struct options **ret_options);
void options_free(struct options *options);
