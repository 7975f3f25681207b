#include "parameters.h"

#include <stdlib.h>

#include "common/berr.h"

static const char EMPTY[] = "{}";
enum { EMPTY_LENGTH = sizeof EMPTY - 1 };

static bool parameters_add(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *name,
                           TRITONSERVER_ParameterType type, const void *value)
{
    switch (type) {
    case TRITONSERVER_PARAMETER_INT:
        return yyjson_mut_obj_add_sint(doc, root, name, *(const int64_t *)value);
    case TRITONSERVER_PARAMETER_BOOL:
        return yyjson_mut_obj_add_bool(doc, root, name, *(const bool *)value);
    case TRITONSERVER_PARAMETER_STRING:
        return yyjson_mut_obj_add_str(doc, root, name, value);
    case TRITONSERVER_PARAMETER_DOUBLE:
        return yyjson_mut_obj_add_real(doc, root, name, *(const double *)value);
    case TRITONSERVER_PARAMETER_BYTES:
    default:
        return false;
    }
}

TRITONSERVER_Error *parameters_put(struct wire_out *out, uint32_t count, parameters_get_fn *get,
                                   void *of)
{
    TRITONSERVER_Error *err = NULL;
    if (count == 0) {
        wire_put_text(out, EMPTY, EMPTY_LENGTH);
        return NULL;
    }
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    if (root)
        yyjson_mut_doc_set_root(doc, root);
    for (uint32_t i = 0; root && i < count && !err; i++) {
        const char *name;
        TRITONSERVER_ParameterType type;
        const void *value;
        err = get(of, i, &name, &type, &value);
        if (!err && !parameters_add(doc, root, name, type, value))
            err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                           "Unsupported parameter type for parameter '%s'.", name);
    }
    size_t length = 0;
    /* What is no number is named as Python's json reads it. */
    const yyjson_write_flag flags =
        YYJSON_WRITE_ALLOW_INVALID_UNICODE | YYJSON_WRITE_ALLOW_INF_AND_NAN;
    char *text = err ? NULL : yyjson_mut_write(doc, flags, &length);
    if (text)
        wire_put_text(out, text, length);
    else if (!err)
        err = berr_no_memory();
    free(text);
    yyjson_mut_doc_free(doc);
    return err;
}

TRITONSERVER_Error *parameters_take(struct wire_in *in, parameters_set_fn *set, void *of)
{
    size_t length, i, count;
    const char *text = wire_text(in, &length);
    if (length <= EMPTY_LENGTH)
        return NULL;
    yyjson_doc *doc = yyjson_read(text, length, 0);
    TRITONSERVER_Error *err = NULL;
    if (!doc)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG, "the parameters cannot be read");
    yyjson_val *name, *value;
    yyjson_obj_foreach(yyjson_doc_get_root(doc), i, count, name, value)
    {
        if (!err)
            err = set(of, yyjson_get_str(name), value);
    }
    yyjson_doc_free(doc);
    return err;
}
