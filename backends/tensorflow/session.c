#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/berr.h"
#include "../common/bfile.h"
#include "gpus.h"
#include "init_ops.h"
#include "model.h"
#include "saved.h"

TRITONSERVER_Error *session_import(const struct model *model, const TF_Buffer *content,
                                   struct session *session)
{
    char device[sizeof "/device:GPU:" + 10];
    TF_ImportGraphDefOptions *options = TF_NewImportGraphDefOptions();
    TF_Status *status = TF_NewStatus();
    if (session->place >= 0) {
        snprintf(device, sizeof device, "/device:GPU:%d", (int)session->place);
        TF_ImportGraphDefOptionsSetDefaultDevice(options, device);
    }
    TF_GraphImportGraphDef(session->graph, content, options, status);
    TF_DeleteImportGraphDefOptions(options);
    return runtime_err(status, "loading model", model->name);
}

static TRITONSERVER_Error *read_graph(const struct model *model, struct session *session)
{
    void *bytes;
    size_t size, position = 0;
    TRITONSERVER_Error *err = bfile_read(model->path, model->name, &bytes, &size);
    if (err)
        return err;
    err = session_import(model, &(TF_Buffer){.data = bytes, .length = size}, session);
    free(bytes);
    if (!err && !TF_GraphNextOperation(session->graph, &position))
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "model '%s' has an empty network", model->name);
    return err;
}

static TRITONSERVER_Error *open_graph(const struct model *model, const TF_SessionOptions *options,
                                      struct session *session)
{
    TRITONSERVER_Error *err = read_graph(model, session);
    if (err)
        return err;
    TF_Status *status = TF_NewStatus();
    session->handle = TF_NewSession(session->graph, options, status);
    return runtime_err(status, "loading model", model->name);
}

static TRITONSERVER_Error *open_saved(const struct model *model, const TF_SessionOptions *options,
                                      struct session *session, TF_Buffer **ret_meta)
{
    if (session->place > 0)
        return saved_open(model, options, session, ret_meta);
    TF_Buffer *meta = TF_NewBuffer();
    TF_Status *status = TF_NewStatus();
    session->handle = TF_LoadSessionFromSavedModel(options, NULL, model->path, &model->options.tag,
                                                   1, session->graph, meta, status);
    TRITONSERVER_Error *err = runtime_err(status, "loading model", model->name);
    if (!err && ret_meta)
        *ret_meta = meta;
    else
        TF_DeleteBuffer(meta);
    return err;
}

static TRITONSERVER_Error *check_tensorrt(const struct model *model, const struct session *session)
{
    if (session->place == OPTIONS_ON_CPU || !model->options.wants_tensorrt ||
        runtime_has_operation(session->graph, "TRTEngineOp"))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_UNSUPPORTED,
                    "unable to load model '%s': the Execution Accelerator 'tensorrt' needs a "
                    "TensorFlow that has TensorRT inside, which this one, %s, has not",
                    model->name, TF_Version());
}

static TRITONSERVER_Error *open_with(const struct model *model, TF_SessionOptions *options,
                                     struct session *session, TF_Buffer **ret_meta)
{
    const struct wire_out *settings =
        session->place == OPTIONS_ON_CPU ? &model->options.on_cpu : &model->options.on_devices;
    TF_Status *status = TF_NewStatus();
    TF_SetConfig(options, settings->bytes, settings->size, status);
    TRITONSERVER_Error *err = runtime_err(status, "setting up model", model->name);
    if (!err && session->place >= 0)
        err = gpus_check(model->name, session->place, settings);
    if (!err)
        err = check_tensorrt(model, session);
    if (err)
        return err;
    return model->is_graph ? open_graph(model, options, session)
                           : open_saved(model, options, session, ret_meta);
}

TRITONSERVER_Error *session_open(const struct model *model, int32_t place,
                                 struct session **ret_session, TF_Buffer **ret_meta)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return berr_no_memory();
    session->place = place;
    session->graph = TF_NewGraph();
    TF_SessionOptions *options = TF_NewSessionOptions();
    TRITONSERVER_Error *err = open_with(model, options, session, ret_meta);
    TF_DeleteSessionOptions(options);
    if (err)
        session_close(session);
    else
        *ret_session = session;
    return err;
}

bool session_find(const struct session *session, const char *source, TF_Output *ret_at)
{
    const char *colon = strrchr(source, ':');
    char *end = NULL;
    long index = colon ? strtol(colon + 1, &end, 10) : 0;
    if (colon && (end == colon + 1 || *end))
        return false;
    char *name = strndup(source, colon ? (size_t)(colon - source) : strlen(source));
    TF_Operation *operation = name ? TF_GraphOperationByName(session->graph, name) : NULL;
    free(name);
    if (!operation || index < 0 || index >= TF_OperationNumOutputs(operation))
        return false;
    *ret_at = (TF_Output){operation, (int)index};
    return true;
}

static TRITONSERVER_Error *tensorflow_session_find_all(const struct model *model,
                                                       const struct session *session,
                                                       const struct model_list *list,
                                                       TF_Output **ret_all)
{
    *ret_all = calloc(list->count + 1, sizeof **ret_all);
    if (!*ret_all)
        return berr_no_memory();
    for (size_t i = 0; i < list->count; i++)
        if (!session_find(session, list->tensors[i].source, &(*ret_all)[i]))
            return berr_new(TRITONSERVER_ERROR_INTERNAL,
                            "unable to load model '%s', the graph has no tensor '%s', which is to "
                            "be '%s'",
                            model->name, list->tensors[i].source, list->tensors[i].name);
    return NULL;
}

/* TensorFlow takes no tensor twice in a run. */
static TRITONSERVER_Error *check_inputs_differ(const struct model *model, const TF_Output *inputs)
{
    const struct model_tensor *tensors = model->inputs.tensors;
    for (size_t i = 1; i < model->inputs.count; i++)
        for (size_t j = 0; j < i; j++)
            if (inputs[i].oper == inputs[j].oper && inputs[i].index == inputs[j].index)
                return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                                "unable to load model '%s': the inputs '%s' and '%s' are one "
                                "tensor of the graph, '%s'",
                                model->name, tensors[j].name, tensors[i].name, tensors[i].source);
    return NULL;
}

TRITONSERVER_Error *session_bind(const struct model *model, struct session *session)
{
    TRITONSERVER_Error *err =
        tensorflow_session_find_all(model, session, &model->inputs, &session->inputs);
    if (!err)
        err = check_inputs_differ(model, session->inputs);
    if (!err)
        err = tensorflow_session_find_all(model, session, &model->outputs, &session->outputs);
    return err ? err : init_ops_run(model, session);
}

void session_close(struct session *session)
{
    if (!session)
        return;
    TF_Status *status = TF_NewStatus();
    if (session->handle) {
        TF_CloseSession(session->handle, status);
        TF_DeleteSession(session->handle, status);
    }
    TF_DeleteStatus(status);
    TF_DeleteGraph(session->graph);
    free(session->inputs);
    free(session->outputs);
    free(session);
}
