#include "init_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../common/berr.h"
#include "../common/bfile.h"
#include "model.h"

static const char list_name[] = "init_ops";

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
    if (access(path, F_OK) != 0) {
        free(path);
        if (asprintf(&path, "%s/%s", folder, model->options.init_ops) < 0)
            return berr_no_memory();
    }
    *ret_path = path;
    return NULL;
}

/* ret_doc  owned by the caller, also with an error: yyjson_doc_free */
static TRITONSERVER_Error *read_list(const struct model *model, yyjson_doc **ret_doc)
{
    char *path;
    void *content;
    size_t size;
    yyjson_read_err why = {0};
    if (bfile_climbs(model->options.init_ops))
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "it must stay inside the model's directory");
    TRITONSERVER_Error *err = find_list(model, &path);
    if (err)
        return err;
    err = bfile_read(path, model->name, &content, &size);
    free(path);
    if (err)
        return err;
    *ret_doc = yyjson_read_opts(content, size, 0, NULL, &why);
    free(content);
    if (yyjson_is_arr(yyjson_obj_get(yyjson_doc_get_root(*ret_doc), list_name)))
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INVALID_ARG, "%s",
                    *ret_doc ? "expected a list 'init_ops' in it" : why.msg);
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
    size_t index, count;
    yyjson_val *entry;
    yyjson_doc *doc = NULL;
    if (!model->options.init_ops)
        return NULL;
    TRITONSERVER_Error *err =
        berr_about(read_list(model, &doc), "unable to load model '%s', TF_INIT_OPS_FILE '%s'",
                   model->name, model->options.init_ops);
    yyjson_val *names = yyjson_obj_get(yyjson_doc_get_root(doc), list_name);
    yyjson_arr_foreach(names, index, count, entry)
    {
        if (!err)
            err = run_operation(model, session, yyjson_get_str(entry));
    }
    yyjson_doc_free(doc);
    return err;
}
