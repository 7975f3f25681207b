#pragma once

#include <stdbool.h>

#include "../../common/scratch.h"
#include "../../common/wire.h"
#include "triton/core/tritonserver.h"

/* A NetDef, the content of a Caffe2 file: a list of operators that compute blobs from blobs. */

struct netdef_arg {
    const char *name;
    struct wire content; /* the fields that hold its value */
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
    /* the blobs that the file lists as external inputs and outputs */
    const char **inputs, **outputs;
};

/* netdef_read - parse a file.
 * memory      owns everything in the result
 * bytes       borrowed; they must outlive the result
 * what        the file's name, for errors
 * errors      INVALID_ARG if the bytes are no NetDef */
TRITONSERVER_Error *netdef_read(struct scratch *memory, struct wire bytes, const char *what,
                                struct netdef *ret_netdef);

/* netdef_has - true if an operator has the argument. */
bool netdef_has(const struct netdef_op *op, const char *name);

/* What an argument that is one value can be. */
enum netdef_kind { NETDEF_REAL, NETDEF_WHOLE, NETDEF_TEXT };

/* netdef_holds - true if an operator has the argument and its value is of this kind. */
bool netdef_holds(const struct netdef_op *op, const char *name, enum netdef_kind kind);

/* netdef_int, netdef_float - the value of an argument; `absent` if the operator does not have
 * the argument, or if its value has another type. */
int64_t netdef_int(const struct netdef_op *op, const char *name, int64_t absent);
float netdef_float(const struct netdef_op *op, const char *name, float absent);

/* netdef_is - true if the value of an argument is this text; the case of letters does not
 * matter.
 * absent   returned if the operator does not have the argument */
bool netdef_is(const struct netdef_op *op, const char *name, const char *text, bool absent);

/* netdef_text - the value of an argument that is a string, or the first of several strings.
 * returns  empty if the operator does not have the argument */
struct wire netdef_text(const struct netdef_op *op, const char *name);

/* netdef_ints, netdef_floats - the values of an argument that is a list.
 * ret_values  room for `cap` values
 * returns     length of the list; if it is above cap, only the first cap values are written */
size_t netdef_ints(const struct netdef_op *op, const char *name, int64_t *ret_values, size_t cap);
size_t netdef_floats(const struct netdef_op *op, const char *name, float *ret_values, size_t cap);
