#include "init_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../common/berr.h"
#include "model.h"

/* Finds the file in the version's directory, else in the model's.
 * ret_path  owned by the caller: free */
static TRITONSERVER_Error *find_list(const struct model *model, char **ret_path)
{
    TRITONBACKEND_ArtifactType kind;
    const char *folder;
    uint64_t version;
    char *path = NULL;
    TRITONSERVER_Error *err = TRITONBACKEND_ModelRepository(model->handle, &kind, &folder);
    if (!err)
        err = TRITONBACKEND_ModelVersion(model->handle, &version);
    if (err)
        return err;
    if (asprintf(&path, "%s/%llu/%s", folder, (unsigned long long)version,
                 model->options.init_ops) < 0)
        return berr_no_memory();
    if (access(path, R_OK) != 0) {
        free(path);
        if (asprintf(&path, "%s/%s", folder, model->options.init_ops) < 0)
            return berr_no_memory();
    }
    *ret_path = path;
    return NULL;
}

static TRITONSERVER_Error *run_operation(const struct model *model, const struct session *session,
                                         const char *name)
{
    const TF_Operation *operation = name ? TF_GraphOperationByName(session->graph, name) : NULL;
    if (!operation)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "unable to load model '%s': '%s' names the operation '%s', which the graph "
                        "does not have",
                        model->name, model->options.init_ops, name ? name : "");
    TF_Status *status = TF_NewStatus();
    TF_SessionRun(session->handle, NULL, NULL, NULL, 0, NULL, NULL, 0, &operation, 1, NULL, status);
    return runtime_err(status, "running an initial operation of model", model->name);
}

TRITONSERVER_Error *init_ops_run(const struct model *model, const struct session *session)
{
    char *path;
    size_t index, count;
    yyjson_val *entry;
    yyjson_read_err why = {0};
    if (!model->options.init_ops)
        return NULL;
    TRITONSERVER_Error *err = find_list(model, &path);
    if (err)
        return err;
    yyjson_doc *doc = yyjson_read_file(path, 0, NULL, &why);
    yyjson_val *names = yyjson_obj_get(yyjson_doc_get_root(doc), "init_ops");
    if (!yyjson_is_arr(names))
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "unable to load model '%s', TF_INIT_OPS_FILE '%s': %s", model->name, path,
                       doc ? "expected a list 'init_ops' in it" : why.msg);
    yyjson_arr_foreach(names, index, count, entry)
    {
        if (!err)
            err = run_operation(model, session, yyjson_get_str(entry));
    }
    yyjson_doc_free(doc);
    free(path);
    return err;
}
