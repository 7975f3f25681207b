#include "saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/berr.h"
#include "../common/bfile.h"
#include "messages.h"
#include "model.h"
#include "texts.h"

static const char init_name[] = "__saved_model_init_op";

/* What is fed when the model is restored and initialized: where its files are. */
struct saved {
    const struct model *model;
    struct session *session;
    struct wire meta;
    size_t count, room;
    TF_Output *at;
    TF_Tensor **values;
};

/* Whether a graph has this tag and no other. */
static bool is_tagged(struct wire meta, const char *tag)
{
    struct wire info = message_part(meta, META_INFO);
    struct wire_field field;
    bool found = false;
    while (wire_next(&info, &field)) {
        if (field.number != INFO_TAGS)
            continue;
        if (!wire_is(field.content, tag))
            return false;
        found = true;
    }
    return found;
}

static TRITONSERVER_Error *saved_malformed(const struct model *model)
{
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "unable to load model '%s': '%s/saved_model.pb' is malformed: it breaks off, "
                    "has text that is not UTF-8, or is no SavedModel",
                    model->name, model->path);
}

static TRITONSERVER_Error *find_graph(struct saved *saved, struct wire all)
{
    const struct model *model = saved->model;
    struct wire_field field;
    while (wire_next(&all, &field)) {
        if (field.number == SAVED_GRAPHS && is_tagged(field.content, model->options.tag)) {
            saved->meta = field.content;
            return NULL;
        }
    }
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "tensorflow error in loading model '%s': no graph with the tag '%s' in '%s'",
                    model->name, model->options.tag, model->path);
}

/* Feeds a tensor with the path FOLDER/FILE in the model. */
static TRITONSERVER_Error *feed_path(struct saved *saved, struct wire tensor, const char *folder,
                                     struct wire file)
{
    char *path = NULL, *name = wire_text(tensor);
    if (saved->count == saved->room) {
        size_t room = saved->room * 2 + 4;
        TF_Output *at = realloc(saved->at, room * sizeof *at);
        saved->at = at ? at : saved->at;
        TF_Tensor **values = realloc(saved->values, room * sizeof(TF_Tensor *));
        saved->values = values ? values : saved->values;
        saved->room = at && values ? room : saved->room;
    }
    bool able = name && saved->count < saved->room &&
                asprintf(&path, "%s/%s/%.*s", saved->model->path, folder, (int)wire_size(file),
                         (const char *)file.at) >= 0;
    bool known = able && session_find(saved->session, name, &saved->at[saved->count]);
    TF_Tensor *value = known ? texts_one(path) : NULL;
    TRITONSERVER_Error *err = NULL;
    if (value)
        saved->values[saved->count++] = value;
    else if (able && !known)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL,
                       "unable to load model '%s', the graph has no tensor '%s', which is to be "
                       "the path of a file",
                       saved->model->name, name);
    else
        err = berr_no_memory();
    free(name);
    if (able)
        free(path);
    return err;
}

static TRITONSERVER_Error *feed_asset(struct saved *saved, struct wire asset)
{
    return feed_path(saved, message_part(message_part(asset, ASSET_TENSOR), TENSOR_NAME), "assets",
                     message_part(asset, ASSET_FILE));
}

static TRITONSERVER_Error *feed_old_asset(struct saved *saved, struct wire asset)
{
    return message_is_asset(asset) ? feed_asset(saved, asset) : saved_malformed(saved->model);
}

/* Files made by TensorFlow 1 list their assets in a collection. */
static TRITONSERVER_Error *feed_assets(struct saved *saved)
{
    TRITONSERVER_Error *err = NULL;
    struct wire_field field;
    struct wire rest = saved->meta;
    struct wire old = message_part(
        message_entry(saved->meta, META_COLLECTIONS, "saved_model_assets"), COLLECTION_ANY);
    while (!err && wire_next(&rest, &field))
        if (field.number == META_ASSETS)
            err = feed_asset(saved, field.content);
    while (!err && saved->count == 0 && wire_next(&old, &field))
        if (field.number == LIST_VALUE)
            err = feed_old_asset(saved, message_part(field.content, ANY_VALUE));
    return err;
}

/* Runs an operation, which may be named by a result of it. */
static TRITONSERVER_Error *run_named(const struct saved *saved, struct wire name)
{
    const struct model *model = saved->model;
    char *text = wire_text(name);
    if (!text)
        return berr_no_memory();
    text[strcspn(text, ":")] = '\0';
    const TF_Operation *operation = TF_GraphOperationByName(saved->session->graph, text);
    TF_Status *status = TF_NewStatus();
    TRITONSERVER_Error *err = NULL;
    if (operation)
        TF_SessionRun(saved->session->handle, NULL, saved->at, saved->values, (int)saved->count,
                      NULL, NULL, 0, &operation, 1, NULL, status);
    else
        err = berr_new(TRITONSERVER_ERROR_INTERNAL,
                       "unable to load model '%s', the graph has no operation '%s', which is to "
                       "prepare it",
                       model->name, text);
    TRITONSERVER_Error *failed = runtime_err(status, "loading model", model->name);
    free(text);
    return err ? err : failed;
}

/* A model without a file of variables has none to restore, and neither has one whose graph does not
 * say how. */
static TRITONSERVER_Error *restore_variables(struct saved *saved)
{
    static const char files[] = "variables";
    struct wire saver = message_part(saved->meta, META_SAVER);
    char *index = NULL;
    if (!saver.at)
        return NULL;
    if (asprintf(&index, "%s/variables/variables.index", saved->model->path) < 0)
        return berr_no_memory();
    bool there = access(index, F_OK) == 0;
    free(index);
    if (!there)
        return NULL;
    const unsigned char *name = (const unsigned char *)files;
    TRITONSERVER_Error *err = feed_path(saved, message_part(saver, SAVER_FILE), files,
                                        (struct wire){.at = name, .end = name + sizeof files - 1});
    if (err)
        return err;
    err = run_named(saved, message_part(saver, SAVER_RESTORE));
    TF_DeleteTensor(saved->values[--saved->count]);
    return err;
}

/* Finds the name in a collection, which has to have just one. */
static TRITONSERVER_Error *find_only(const struct model *model, struct wire collection,
                                     struct wire *ret_name)
{
    struct wire nodes = message_part(collection, COLLECTION_NODES);
    struct wire_field field;
    size_t count = 0;
    while (wire_next(&nodes, &field)) {
        if (field.number != LIST_VALUE)
            continue;
        *ret_name = field.content;
        count++;
    }
    if (count == 1)
        return NULL;
    return berr_new(TRITONSERVER_ERROR_INTERNAL,
                    "unable to load model '%s', expected exactly one operation that prepares it, "
                    "found %zu in '%s/saved_model.pb'",
                    model->name, count, model->path);
}

static TRITONSERVER_Error *initialize(const struct saved *saved)
{
    static const char *const collections[] = {"saved_model_main_op", "legacy_init_op"};
    struct wire of = message_entry(saved->meta, META_SIGNATURES, init_name);
    struct wire output = message_entry(of, SIGNATURE_OUTPUTS, init_name);
    struct wire name = message_part(output, TENSOR_NAME);
    TRITONSERVER_Error *err = NULL;
    if (of.at && !output.at)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL,
                       "unable to load model '%s', the signature '%s' has no output of that name",
                       saved->model->name, init_name);
    for (size_t i = 0; i < sizeof collections / sizeof *collections && !of.at; i++) {
        of = message_entry(saved->meta, META_COLLECTIONS, collections[i]);
        if (of.at)
            err = find_only(saved->model, of, &name);
    }
    if (err)
        return err;
    return wire_size(name) ? run_named(saved, name) : NULL;
}

static TRITONSERVER_Error *open_read(struct saved *saved, const TF_SessionOptions *options,
                                     struct wire all)
{
    TRITONSERVER_Error *err =
        message_is_saved(all) ? find_graph(saved, all) : saved_malformed(saved->model);
    if (err)
        return err;
    struct wire graph = message_part(saved->meta, META_GRAPH);
    err = session_import(saved->model, &(TF_Buffer){.data = graph.at, .length = wire_size(graph)},
                         saved->session);
    if (err)
        return err;
    TF_Status *status = TF_NewStatus();
    saved->session->handle = TF_NewSession(saved->session->graph, options, status);
    err = runtime_err(status, "loading model", saved->model->name);
    if (!err)
        err = feed_assets(saved);
    if (!err)
        err = restore_variables(saved);
    return err ? err : initialize(saved);
}

TRITONSERVER_Error *saved_open(const struct model *model, const TF_SessionOptions *options,
                               struct session *session, TF_Buffer **ret_meta)
{
    struct saved saved = {.model = model, .session = session};
    void *bytes = NULL;
    size_t size = 0;
    char *path = NULL;
    if (asprintf(&path, "%s/saved_model.pb", model->path) < 0)
        return berr_no_memory();
    TRITONSERVER_Error *err = bfile_read(path, model->name, &bytes, &size);
    free(path);
    if (err)
        return err;
    const unsigned char *at = bytes;
    err = open_read(&saved, options, (struct wire){.at = at, .end = at + size});
    if (!err && ret_meta)
        *ret_meta = TF_NewBufferFromString(saved.meta.at, wire_size(saved.meta));
    while (saved.count > 0)
        TF_DeleteTensor(saved.values[--saved.count]);
    free(saved.at);
    free(saved.values);
    free(bytes);
    return err;
}
