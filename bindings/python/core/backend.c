/* The backend of models that are functions of this process: this library is it, too. An instance
 * calls what Python has bound to the model, under the GIL. */
#include "core.h"

#include "execute.h"
#include "watch.h"
#include "triton/core/tritonbackend.h"

#define EXPORT __attribute__((visibility("default")))

/* What runs the model: function(name, configuration) of Python. */
static PyObject *backend_find(const char *name, TRITONSERVER_Message *config)
{
    const char *json;
    size_t bytes;
    TRITONSERVER_Error *e = TRITONSERVER_MessageSerializeToJson(config, &json, &bytes);
    if (!core_check(e))
        return NULL;
    PyObject *args = Py_BuildValue("(ss#)", name, json, (Py_ssize_t)bytes);
    PyObject *found = args ? PyObject_CallObject(core.function, args) : NULL;
    Py_XDECREF(args);
    return found;
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    const char *name;
    TRITONSERVER_Message *config = NULL;
    TRITONSERVER_Error *e = TRITONBACKEND_ModelName(model, &name);
    if (!e)
        e = TRITONBACKEND_ModelConfig(model, 1, &config);
    if (e)
        return e;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *found = backend_find(name, config);
    struct function *f = found ? function_new(name, found) : NULL;
    Py_XDECREF(found);
    if (!f)
        e = core_error(core_exception(), TRITONSERVER_ERROR_INVALID_ARG);
    PyGILState_Release(state);
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(config));
    return e ? e : TRITONBACKEND_ModelSetState(model, f);
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *f = NULL;
    TRITONSERVER_Error *e = TRITONBACKEND_ModelState(model, &f);
    function_unref(f);
    return e;
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    struct watch *w = watch_new();
    if (w)
        return TRITONBACKEND_ModelInstanceSetState(instance, w);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory");
}

EXPORT TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    void *w = NULL;
    TRITONSERVER_Error *e = TRITONBACKEND_ModelInstanceState(instance, &w);
    watch_free(w);
    return e;
}

EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                              TRITONBACKEND_Request **requests,
                                                              const uint32_t request_count)
{
    TRITONBACKEND_Model *model;
    void *state = NULL, *w = NULL;
    TRITONSERVER_Error *e = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (!e)
        e = TRITONBACKEND_ModelState(model, &state);
    if (!e)
        e = TRITONBACKEND_ModelInstanceState(instance, &w);
    if (e)
        return e;
    struct function *f = state;
    if (f->timeout_ns)
        watch_run(w, f, instance, requests, request_count);
    else
        execute_batch(&(struct execution){
            .function = f, .instance = instance, .requests = requests, .count = request_count});
    return NULL;
}
