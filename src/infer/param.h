#pragma once
/* Named parameters of a request or a response: a linked list in an arena, in order of arrival. */
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of TRITONSERVER_ParameterType. */
enum param_type {
    PARAM_STRING = 0,
    PARAM_INT = 1,
    PARAM_BOOL = 2,
    PARAM_DOUBLE = 3,
    PARAM_BYTES = 4,
};

struct param {
    struct param *next;
    const char *name;
    enum param_type type;
    union {
        struct {
            const char *data; /* strings also end in NUL */
            size_t len;
        } bytes;
        int64_t i;
        bool b;
        double d;
    };
};

struct param_list {
    struct param *first;
    struct param **last; /* NULL while empty */
    uint32_t count;
};

/* param_add - append a parameter with a copy of name[0..len); the caller sets the value. */
struct param *param_add(struct param_list *l, struct arena *a, const char *name, size_t len,
                        enum param_type type);

/* param_add_string - append a string parameter, value copied. */
struct param *param_add_string(struct param_list *l, struct arena *a, const char *name, size_t len,
                               const char *value, size_t value_len);

/* param_find - the last parameter with that name; NULL if there is none. */
const struct param *param_find(const struct param_list *l, const char *name);
