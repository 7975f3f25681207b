#include "runtime.h"

#include <math.h>
#include <stdlib.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/cpus.h"
#include "gpus.h"

/* The type of an old-style (reference) variable is that of its content plus this. */
enum { REFERENCE = 100 };

static const struct {
    TF_DataType type;
    TRITONSERVER_DataType datatype;
} types[] = {
    {TF_BOOL, TRITONSERVER_TYPE_BOOL},     {TF_UINT8, TRITONSERVER_TYPE_UINT8},
    {TF_UINT16, TRITONSERVER_TYPE_UINT16}, {TF_UINT32, TRITONSERVER_TYPE_UINT32},
    {TF_UINT64, TRITONSERVER_TYPE_UINT64}, {TF_INT8, TRITONSERVER_TYPE_INT8},
    {TF_INT16, TRITONSERVER_TYPE_INT16},   {TF_INT32, TRITONSERVER_TYPE_INT32},
    {TF_INT64, TRITONSERVER_TYPE_INT64},   {TF_HALF, TRITONSERVER_TYPE_FP16},
    {TF_FLOAT, TRITONSERVER_TYPE_FP32},    {TF_DOUBLE, TRITONSERVER_TYPE_FP64},
    {TF_STRING, TRITONSERVER_TYPE_BYTES},  {TF_BFLOAT16, TRITONSERVER_TYPE_BF16},
};

TRITONSERVER_DataType runtime_datatype(TF_DataType type)
{
    int plain = (int)type > REFERENCE ? (int)type - REFERENCE : (int)type;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((int)types[i].type == plain)
            return types[i].datatype;
    return TRITONSERVER_TYPE_INVALID;
}

TF_DataType runtime_type(TRITONSERVER_DataType datatype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].datatype == datatype)
            return types[i].type;
    return (TF_DataType)0;
}

TRITONSERVER_Error *runtime_err(TF_Status *status, const char *doing, const char *model)
{
    TRITONSERVER_Error *err = NULL;
    if (TF_GetCode(status) != TF_OK)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "tensorflow error in %s '%s': %s", doing, model,
                       TF_Message(status));
    TF_DeleteStatus(status);
    return err;
}

bool runtime_has_operation(TF_Graph *graph, const char *name)
{
    TF_Buffer *described = TF_NewBuffer();
    TF_Status *status = TF_NewStatus();
    TF_GraphGetOpDef(graph, name, described, status);
    bool found = TF_GetCode(status) == TF_OK;
    TF_DeleteStatus(status);
    TF_DeleteBuffer(described);
    return found;
}

static TRITONSERVER_Error *parse_fraction(const char *text, double *ret_value)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0) || !isfinite(value))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "expected a finite number from 0 on, got '%s'", text);
    *ret_value = value;
    return NULL;
}

static const char *text_of_setting(yyjson_val *cmdline, const char *name)
{
    return yyjson_get_str(yyjson_obj_get(cmdline, name));
}

static TRITONSERVER_Error *about_setting(TRITONSERVER_Error *err, const char *name)
{
    return berr_about(err, "backend 'tensorflow', setting '%s'", name);
}

static TRITONSERVER_Error *tensorflow_runtime_read_settings(TRITONBACKEND_Backend *backend,
                                                            yyjson_val *cmdline,
                                                            struct runtime *runtime)
{
    static const char rows[] = "default-max-batch-size", soft[] = "allow-soft-placement",
                      fraction[] = "gpu-memory-fraction";
    static const char *const names[] = {soft, fraction, NULL};
    TRITONSERVER_Error *err = NULL;
    const char *text = text_of_setting(cmdline, rows);
    if (text)
        err = about_setting(bconfig_parse_int(text, &runtime->default_max_batch_size), rows);
    text = text_of_setting(cmdline, soft);
    if (!err && text)
        err = about_setting(bconfig_parse_bool(text, &runtime->soft_placement), soft);
    text = text_of_setting(cmdline, fraction);
    if (!err && text)
        err = about_setting(parse_fraction(text, &runtime->gpu_memory_fraction), fraction);
    if (!err)
        bconfig_warn_unknown(backend, cmdline, names);
    return err;
}

TRITONSERVER_Error *runtime_new(TRITONBACKEND_Backend *backend, struct runtime **ret_runtime)
{
    yyjson_doc *doc;
    TRITONSERVER_Error *err = bconfig_of_backend(backend, &doc);
    if (err)
        return err;
    struct runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime) {
        runtime->processors = cpus_usable();
        runtime->soft_placement = true;
        runtime->has_cuda = gpus_built_in();
        err = tensorflow_runtime_read_settings(
            backend, yyjson_obj_get(yyjson_doc_get_root(doc), "cmdline"), runtime);
    } else {
        err = berr_no_memory();
    }
    yyjson_doc_free(doc);
    if (err)
        free(runtime);
    else
        *ret_runtime = runtime;
    return err;
}
