#pragma once
/* A single named value: the TRITONSERVER_Parameter of the C ABI. Immutable. */
#include "infer/param.h"

struct parameter {
    uint32_t magic;
    struct param p; /* p.next is not used */
};

/* parameter_new - name and value are copied.
 * value    a string for PARAM_STRING; else a pointer to an int64_t, bool or double
 * returns  NULL for PARAM_BYTES and unknown types */
struct parameter *parameter_new(const char *name, enum param_type type, const void *value);

/* parameter_new_bytes - the bytes are borrowed as long as the parameter lives. */
struct parameter *parameter_new_bytes(const char *name, const void *bytes, size_t size);

/* parameter_free - NULL is fine. */
void parameter_free(struct parameter *p);

/* parameter_of - the object behind an ABI handle; NULL if the handle is none. */
const struct parameter *parameter_of(const void *handle);
