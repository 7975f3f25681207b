#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../common/bconfig.h"
#include "../common/bentry.h"
#include "../common/berr.h"
#include "../common/bfile.h"
#include "check.h"
#include "complete.h"
#include "operations.h"
#include "signature.h"

static TRITONSERVER_Error *tensorflow_model_read_config(struct model *model)
{
    TRITONSERVER_Error *err =
        bconfig_read(model->handle, &model->config_doc, &model->config, &model->max_batch_size);
    return err ? err : options_read(model->runtime, model->name, model->config, &model->options);
}

/* TensorFlow reads by itself what lies in the directory of a SavedModel. */
static TRITONSERVER_Error *check_directory(const struct model *model)
{
    char *inside;
    if (asprintf(&inside, "%s/", model->path) < 0)
        return berr_no_memory();
    TRITONSERVER_Error *err = bfile_check_folder(inside, model->name);
    free(inside);
    return err;
}

/* If the configuration does not name the format, the file shows it: a SavedModel is a directory. */
static TRITONSERVER_Error *tensorflow_model_find_file(struct model *model)
{
    struct stat status;
    const char *platform = yyjson_get_str(yyjson_obj_get(model->config, "platform"));
    model->is_graph = platform && strcmp(platform, "tensorflow_graphdef") == 0;
    TRITONSERVER_Error *err =
        bfile_of_model(model->handle, model->config,
                       model->is_graph ? "model.graphdef" : "model.savedmodel", &model->path);
    if (err)
        return err;
    if (!platform || !*platform)
        model->is_graph = stat(model->path, &status) == 0 && !S_ISDIR(status.st_mode);
    else if (!model->is_graph && strcmp(platform, "tensorflow_savedmodel") != 0)
        err =
            berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "platform %s not supported for TensorFlow model '%s'", platform, model->name);
    return err || model->is_graph ? err : check_directory(model);
}

static TRITONSERVER_Error *learn_saved(struct model *model, const TF_Buffer *meta)
{
    bool wanted = false;
    TRITONSERVER_Error *err = signature_read_saved(model, meta);
    if (!err)
        err = TRITONBACKEND_ModelAutoCompleteConfig(model->handle, &wanted);
    if (!err && wanted)
        err = complete_fill_in(model);
    return err || !wanted ? err : tensorflow_model_read_config(model);
}

static TRITONSERVER_Error *open_first(struct model *model)
{
    TF_Buffer *meta = NULL;
    TRITONSERVER_Error *err = session_open(model, model->options.place, &model->sessions, &meta);
    if (!err)
        err = model->is_graph ? signature_read_graph(model, model->sessions)
                              : learn_saved(model, meta);
    if (meta)
        TF_DeleteBuffer(meta);
    if (!err)
        err = check_config(model);
    return err ? err : session_bind(model, model->sessions);
}

static TRITONSERVER_Error *tensorflow_model_load(struct model *model)
{
    TRITONSERVER_Error *err = TRITONBACKEND_ModelName(model->handle, &model->name);
    if (!err)
        err = tensorflow_model_read_config(model);
    if (!err)
        options_tell(model->name, model->config, &model->options);
    if (!err)
        err = tensorflow_model_find_file(model);
    if (!err)
        err = operations_load(model);
    if (!err)
        err = open_first(model);
    return err;
}

const size_t model_size = sizeof(struct model);

TRITONSERVER_Error *model_init(struct model *model, TRITONBACKEND_Model *handle, void *runtime)
{
    pthread_mutex_init(&model->lock, NULL);
    model->runtime = runtime;
    model->handle = handle;
    return tensorflow_model_load(model);
}

void model_fini(struct model *model)
{
    session_close(model->sessions); /* at most the first one, which no instance took */
    signature_free(model);
    options_free(&model->options);
    yyjson_doc_free(model->config_doc);
    free(model->path);
    pthread_mutex_destroy(&model->lock);
}

/* The caller has the lock. */
static struct session *take_open(struct model *model, int32_t place)
{
    struct session *session = model->sessions;
    while (session && (session->place != place || session->users >= model->options.share_count))
        session = session->next;
    if (session)
        session->users++;
    return session;
}

static TRITONSERVER_Error *open_another(const struct model *model, int32_t place,
                                        struct session **ret_session)
{
    struct session *session = NULL;
    TRITONSERVER_Error *err = session_open(model, place, &session, NULL);
    if (!err)
        err = session_bind(model, session);
    if (err) {
        session_close(session);
        return err;
    }
    session->users = 1;
    *ret_session = session;
    return NULL;
}

static void list_session(struct model *model, struct session *session)
{
    session->next = model->sessions;
    model->sessions = session;
}

/* Who would share a session that is being opened waits for it. */
TRITONSERVER_Error *model_take_session(struct model *model, int32_t place,
                                       struct session **ret_session)
{
    bool shares = model->options.share_count > 1;
    TRITONSERVER_Error *err = NULL;
    pthread_mutex_lock(&model->lock);
    struct session *session = take_open(model, place);
    if (!session) {
        if (!shares)
            pthread_mutex_unlock(&model->lock);
        err = open_another(model, place, &session);
        if (!shares)
            pthread_mutex_lock(&model->lock);
        if (!err)
            list_session(model, session);
    }
    pthread_mutex_unlock(&model->lock);
    *ret_session = session;
    return err;
}

void model_leave_session(struct model *model, struct session *session)
{
    pthread_mutex_lock(&model->lock);
    bool last = --session->users == 0;
    if (last) {
        struct session **at = &model->sessions;
        while (*at != session)
            at = &(*at)->next;
        *at = session->next;
    }
    pthread_mutex_unlock(&model->lock);
    if (last)
        session_close(session);
}
