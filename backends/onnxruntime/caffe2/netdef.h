#pragma once

#include <stdbool.h>

#include "../../common/scratch.h"
#include "../../common/wire.h"
#include "triton/core/tritonserver.h"

/* NetDefs, Caffe2's files: a list of operators that compute blobs out of blobs. */

struct netdef_arg {
    const char *name;
    struct wire content; /* the fields of its value */
};

struct netdef_op {
    const char *type;
    size_t input_count, output_count, arg_count;
    const char **inputs, **outputs;
    struct netdef_arg *args;
};

struct netdef {
    size_t op_count, input_count, output_count;
    struct netdef_op *ops;
    const char **inputs, **outputs; /* those that the file calls external */
};

/* netdef_read - read a file.
 * memory      what is read lies there
 * bytes       outlive what is read
 * what        the file's name, for errors
 * errors      INVALID_ARG for bytes that are no NetDef */
TRITONSERVER_Error *netdef_read(struct scratch *memory, struct wire bytes, const char *what,
                                struct netdef *ret_netdef);

/* netdef_has - whether an operator has an argument. */
bool netdef_has(const struct netdef_op *op, const char *name);

/* netdef_int, netdef_float - the value of an argument; `absent` where there is none, or none of
 * that kind. */
int64_t netdef_int(const struct netdef_op *op, const char *name, int64_t absent);
float netdef_float(const struct netdef_op *op, const char *name, float absent);

/* netdef_is - whether the value of an argument is this text, in capitals or not; `absent` where
 * there is none. */
bool netdef_is(const struct netdef_op *op, const char *name, const char *text, bool absent);

/* netdef_text - the value of an argument that is a text, or the first of several.
 * returns  empty where there is none */
struct wire netdef_text(const struct netdef_op *op, const char *name);

/* netdef_ints, netdef_floats - the values of an argument that has several.
 * ret_values  cap slots
 * returns     how many there are; when that is more than cap, only cap are written */
size_t netdef_ints(const struct netdef_op *op, const char *name, int64_t *ret_values, size_t cap);
size_t netdef_floats(const struct netdef_op *op, const char *name, float *ret_values, size_t cap);
