#include "vino.h"

#include <stdlib.h>
#include <string.h>

#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/cpus.h"

static const struct {
    ov_element_type_e element;
    TRITONSERVER_DataType datatype;
} types[] = {
    {BOOLEAN, TRITONSERVER_TYPE_BOOL}, {U8, TRITONSERVER_TYPE_UINT8},
    {U16, TRITONSERVER_TYPE_UINT16},   {U32, TRITONSERVER_TYPE_UINT32},
    {U64, TRITONSERVER_TYPE_UINT64},   {I8, TRITONSERVER_TYPE_INT8},
    {I16, TRITONSERVER_TYPE_INT16},    {I32, TRITONSERVER_TYPE_INT32},
    {I64, TRITONSERVER_TYPE_INT64},    {F16, TRITONSERVER_TYPE_FP16},
    {F32, TRITONSERVER_TYPE_FP32},     {F64, TRITONSERVER_TYPE_FP64},
    {BF16, TRITONSERVER_TYPE_BF16},
};

TRITONSERVER_DataType vino_datatype(ov_element_type_e element)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].element == element)
            return types[i].datatype;
    return TRITONSERVER_TYPE_INVALID;
}

ov_element_type_e vino_element(TRITONSERVER_DataType datatype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].datatype == datatype)
            return types[i].element;
    return DYNAMIC;
}

TRITONSERVER_Error *vino_err(ov_status_e status, const char *doing)
{
    if (status == OK)
        return NULL;
    const char *text = ov_get_last_err_msg();
    TRITONSERVER_Error *err = berr_new(TRITONSERVER_ERROR_INTERNAL, "openvino error in %s : %s",
                                       doing, text ? text : ov_get_error_info(status));
    ov_free(text);
    return err;
}

static TRITONSERVER_Error *openvino_vino_read_settings(TRITONBACKEND_Backend *backend,
                                                       struct vino *vino)
{
    yyjson_doc *doc;
    TRITONSERVER_Error *err = bconfig_of_backend(backend, &doc);
    if (err)
        return err;
    yyjson_val *cmdline = yyjson_obj_get(yyjson_doc_get_root(doc), "cmdline");
    static const char setting[] = "default-max-batch-size";
    const char *text = yyjson_get_str(yyjson_obj_get(cmdline, setting));
    if (text)
        err = berr_about(bconfig_parse_int(text, &vino->default_max_batch_size),
                         "backend 'openvino', setting '%s'", setting);
    if (!err)
        bconfig_warn_unknown(backend, cmdline, (const char *const[]){NULL});
    yyjson_doc_free(doc);
    return err;
}

TRITONSERVER_Error *vino_new(TRITONBACKEND_Backend *backend, struct vino **ret_vino)
{
    struct vino *vino = calloc(1, sizeof *vino);
    if (!vino)
        return berr_no_memory();
    TRITONBACKEND_ArtifactType kind;
    const char *folder;
    TRITONSERVER_Error *err = TRITONBACKEND_BackendArtifacts(backend, &kind, &folder);
    if (!err) {
        vino->folder = strdup(folder);
        err = vino->folder ? openvino_vino_read_settings(backend, vino) : berr_no_memory();
    }
    if (!err)
        err = vino_err(ov_core_create(&vino->core), "starting the runtime");
    if (err) {
        vino_free(vino);
        return err;
    }
    vino->processors = cpus_usable();
    *ret_vino = vino;
    return NULL;
}

void vino_free(struct vino *vino)
{
    if (!vino)
        return;
    ov_core_free(vino->core);
    free(vino->folder);
    free(vino);
}
