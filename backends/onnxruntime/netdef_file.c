#include "netdef_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caffe2/netdef.h"
#include "caffe2/translate.h"
#include "../common/bconfig.h"
#include "../common/berr.h"
#include "../common/bfile.h"

/* Everything that is allocated while a model is translated. */
struct netdef_file {
    const struct model *model;
    struct scratch memory;
    char *net_path, *init_path;
    void *net_content, *init_content;
    struct netdef net, init;
    struct translate_tensor *inputs, *outputs;
    size_t input_count, output_count;
    struct wire_out onnx;
};

static void close_files(struct netdef_file *file)
{
    free(file->net_path);
    free(file->init_path);
    free(file->net_content);
    free(file->init_content);
    wire_free(&file->onnx);
    scratch_fini(&file->memory);
}

static TRITONSERVER_Error *read_net(struct netdef_file *file, const char *path, void **content,
                                    struct netdef *ret_net)
{
    size_t size;
    TRITONSERVER_Error *err = bfile_read(path, file->model->name, content, &size);
    if (err)
        return err;
    const unsigned char *bytes = *content;
    return netdef_read(&file->memory, (struct wire){.at = bytes, .end = bytes + size}, path,
                       ret_net);
}

/* Read DIR/model.netdef, and DIR/init_model.netdef with the weights if it exists. Without that
 * file, model.netdef holds the weights too. */
static TRITONSERVER_Error *read_files(struct netdef_file *file)
{
    const struct model *model = file->model;
    TRITONSERVER_Error *err =
        bfile_of_model(model->handle, model->config, "model.netdef", &file->net_path);
    if (err)
        return err;
    const char *name = strrchr(file->net_path, '/') + 1;
    if (asprintf(&file->init_path, "%.*sinit_%s", (int)(name - file->net_path), file->net_path,
                 name) < 0) {
        file->init_path = NULL;
        return berr_no_memory();
    }
    err = read_net(file, file->net_path, &file->net_content, &file->net);
    if (!err && file->net.op_count == 0 && file->net.input_count == 0)
        err = berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "'%s' is no NetDef: it has neither operators nor external inputs",
                       file->net_path);
    if (!err && access(file->init_path, F_OK) == 0)
        err = read_net(file, file->init_path, &file->init_content, &file->init);
    return err;
}

/* Add a tensor of the configuration, with the shape that the network expects: after `reshape`,
 * and with the batch dimension.
 * entry    NULL = a control of sequences */
static TRITONSERVER_Error *add_told_tensor(struct netdef_file *file, const char *name,
                                           const char *type, yyjson_val *entry,
                                           struct translate_tensor *tensor)
{
    yyjson_val *reshape = yyjson_obj_get(entry, "reshape");
    yyjson_val *told = reshape ? yyjson_obj_get(reshape, "shape") : yyjson_obj_get(entry, "dims");
    size_t first = file->model->max_batch_size > 0 ? 1 : 0;
    size_t rank = entry ? yyjson_arr_size(told) : 1;
    int64_t *dims = scratch_array(&file->memory, first + rank, sizeof *dims);
    if (!dims)
        return berr_no_memory();
    if (first)
        dims[0] = -1;
    if (entry)
        bconfig_shape(told, dims + first, rank);
    else
        dims[first] = 1; /* a control of sequences has one value */
    *tensor = (struct translate_tensor){.name = name ? name : "",
                                        .datatype = bconfig_datatype(type),
                                        .rank = first + rank,
                                        .dims = dims};
    return NULL;
}

static TRITONSERVER_Error *add_entries_of(struct netdef_file *file, yyjson_val *entries,
                                          const char *name_key, struct translate_tensor *tensors,
                                          size_t *count)
{
    size_t index, most;
    yyjson_val *entry;
    yyjson_arr_foreach(entries, index, most, entry)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(entry, name_key));
        const char *type = yyjson_get_str(yyjson_obj_get(entry, "data_type"));
        TRITONSERVER_Error *err = add_told_tensor(file, name, type, entry, &tensors[(*count)++]);
        if (err)
            return err;
    }
    return NULL;
}

static TRITONSERVER_Error *add_controls(struct netdef_file *file, yyjson_val *controls)
{
    size_t index, most;
    yyjson_val *input;
    yyjson_arr_foreach(controls, index, most, input)
    {
        const char *name = yyjson_get_str(yyjson_obj_get(input, "name"));
        yyjson_val *control = yyjson_arr_get_first(yyjson_obj_get(input, "control"));
        TRITONSERVER_Error *err = add_told_tensor(file, name, bconfig_control_type(control), NULL,
                                                  &file->inputs[file->input_count++]);
        if (err)
            return err;
    }
    return NULL;
}

/* Collect inputs, outputs, and the controls and states of sequences from the configuration: a
 * NetDef holds neither their types nor their shapes. */
static TRITONSERVER_Error *read_tensors(struct netdef_file *file)
{
    yyjson_val *config = file->model->config;
    yyjson_val *inputs = yyjson_obj_get(config, "input");
    yyjson_val *outputs = yyjson_obj_get(config, "output");
    yyjson_val *sequence = yyjson_obj_get(config, "sequence_batching");
    yyjson_val *controls = yyjson_obj_get(sequence, "control_input");
    yyjson_val *states = yyjson_obj_get(sequence, "state");
    size_t state_count = yyjson_arr_size(states);
    file->inputs = scratch_array(&file->memory,
                                 yyjson_arr_size(inputs) + yyjson_arr_size(controls) + state_count,
                                 sizeof *file->inputs);
    file->outputs =
        scratch_array(&file->memory, yyjson_arr_size(outputs) + state_count, sizeof *file->outputs);
    if (!file->inputs || !file->outputs)
        return berr_no_memory();
    TRITONSERVER_Error *err =
        add_entries_of(file, inputs, "name", file->inputs, &file->input_count);
    if (!err)
        err = add_controls(file, controls);
    if (!err)
        err = add_entries_of(file, states, "input_name", file->inputs, &file->input_count);
    if (!err)
        err = add_entries_of(file, outputs, "name", file->outputs, &file->output_count);
    if (!err)
        err = add_entries_of(file, states, "output_name", file->outputs, &file->output_count);
    return err;
}

static TRITONSERVER_Error *translate_files(struct netdef_file *file)
{
    struct translate_network network = {.init = file->init_content ? &file->init : NULL,
                                        .net = &file->net,
                                        .inputs = file->inputs,
                                        .input_count = file->input_count,
                                        .outputs = file->outputs,
                                        .output_count = file->output_count};
    TRITONSERVER_Error *err = translate_network(&file->memory, &network, &file->onnx);
    if (!err)
        return NULL;
    TRITONSERVER_Error *named =
        berr_new(TRITONSERVER_ErrorCode(err), "unable to load model '%s', '%s': %s",
                 file->model->name, file->net_path, TRITONSERVER_ErrorMessage(err));
    berr_drop(err);
    return named;
}

TRITONSERVER_Error *netdef_file_open(const struct model *model, const struct ort *ort,
                                     const OrtSessionOptions *options, OrtSession **ret_session)
{
    struct netdef_file file = {.model = model};
    TRITONSERVER_Error *err = read_files(&file);
    if (!err)
        err = read_tensors(&file);
    if (!err)
        err = translate_files(&file);
    if (!err)
        err =
            ort_err(ort->api, ort->api->CreateSessionFromArray(
                                  ort->env, file.onnx.bytes, file.onnx.size, options, ret_session));
    close_files(&file);
    return err;
}
