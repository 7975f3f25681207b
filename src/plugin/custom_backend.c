#include "plugin/custom_backend.h"

#include "base/build_version.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/config.h"
#include "os/files/file.h"
#include "plugin/custom_library.h"
#include "plugin/custom_run.h"
#include "plugin/instance.h"
#include "plugin/model.h"
#include "proto/model_config.pb-c.h"

#include <inttypes.h>
#include <string.h>

static struct err *custom_backend_check_file(const struct plugin_model *m, const char *path)
{
    const Inference__ModelConfig *p = m->proto;
    if (!file_exists(path))
        return err_new(STATUS_NOT_FOUND, "unable to find custom library '%s' of model '%s'%s", path,
                       m->name,
                       p->n_cc_model_filenames
                           ? "; those of cc_model_filenames are for GPUs, and custom backends run "
                             "on the CPU only"
                           : "");
    return NULL;
}

static struct err *open_model(struct plugin_model *m)
{
    struct strbuf dir = STRBUF_INIT;
    strbuf_printf(&dir, "%s/%" PRId64, m->dir, m->version);
    char *path = file_join(strbuf_str(&dir), m->proto->default_model_filename);
    struct custom_library *l = NULL;
    struct err *e = custom_backend_check_file(m, path);
    if (!e)
        e = custom_library_open(path, &l);
    mem_free(path);
    strbuf_fini(&dir);
    m->state = l;
    return e;
}

static TRITONSERVER_Error *model_begin(TRITONBACKEND_Model *handle)
{
    return (TRITONSERVER_Error *)open_model(model_check(handle));
}

static TRITONSERVER_Error *model_end(TRITONBACKEND_Model *handle)
{
    custom_library_close(model_check(handle)->state);
    return NULL;
}

/* The current configuration in protobuf's wire format; the caller frees it. */
static char *pack_config(struct plugin_model *m, size_t *ret_len)
{
    mutex_lock(&m->lock);
    struct model_config *config = config_ref(m->published);
    mutex_unlock(&m->lock);
    size_t len = inference__model_config__get_packed_size(config->proto);
    char *bytes = mem_alloc(len + 1);
    inference__model_config__pack(config->proto, (uint8_t *)bytes);
    config_unref(config);
    *ret_len = len;
    return bytes;
}

/* The repository that contains the model's directory; the caller frees the path. */
static char *custom_backend_find_repository(const struct plugin_model *m)
{
    size_t len = strlen(m->dir);
    while (len > 1 && m->dir[len - 1] == '/')
        len--;
    while (len && m->dir[len - 1] != '/')
        len--;
    char *parent = len ? mem_strndup(m->dir, len) : mem_strdup(".");
    char *path = file_absolute(parent);
    mem_free(parent);
    return path;
}

static int custom_backend_initialize(struct plugin_instance *i, struct custom_context *c)
{
    char *repository = custom_backend_find_repository(i->model);
    const char *parameters[CUSTOM_SERVER_PARAMETER_CNT] = {
        [INFERENCE_SERVER_VERSION] = BUILD_VERSION,
        [MODEL_REPOSITORY_PATH] = repository,
    };
    CustomInitializeData data = {
        .instance_name = i->name,
        .gpu_device_id = CUSTOM_NO_GPU_DEVICE,
        .server_parameter_cnt = CUSTOM_SERVER_PARAMETER_CNT,
        .server_parameters = parameters,
    };
    char *config = pack_config(i->model, &data.serialized_model_config_size);
    data.serialized_model_config = config;
    int code = c->library->initialize(&data, &c->own);
    mem_free(config);
    mem_free(repository);
    return code;
}

static void close_context(const struct plugin_instance *i, struct custom_context *c)
{
    int code = c->library->finalize(c->own);
    if (code)
        LOG_ERROR("model '%s', instance '%s': CustomFinalize returned an error: (%d) %s",
                  i->model->name, i->name, code, custom_library_words(c->library, c->own, code));
    mem_free(c);
}

static struct err *open_instance(struct plugin_instance *i)
{
    if (i->kind == TRITONSERVER_INSTANCEGROUPKIND_GPU)
        return err_new(STATUS_UNSUPPORTED,
                       "model '%s': custom backends run on the CPU only, expected instances of "
                       "KIND_CPU, found KIND_GPU",
                       i->model->name);
    struct custom_context *c = MEM_NEW(struct custom_context);
    c->library = i->model->state;
    int code = custom_backend_initialize(i, c);
    struct err *e = NULL;
    if (code && !c->own) /* without a context the library cannot be asked for a text */
        e = err_new(STATUS_INTERNAL,
                    "initialize error for '%s': failed to create instance, error code: %d",
                    i->model->name, code);
    else if (code)
        e = err_new(STATUS_INTERNAL, "initialize error for '%s': (%d) %s", i->model->name, code,
                    custom_library_words(c->library, c->own, code));
    if (!e)
        i->state = c;
    else if (c->own)
        close_context(i, c);
    else
        mem_free(c);
    return e;
}

static TRITONSERVER_Error *custom_begin_instance(TRITONBACKEND_ModelInstance *handle)
{
    return (TRITONSERVER_Error *)open_instance(instance_check(handle));
}

static TRITONSERVER_Error *instance_end(TRITONBACKEND_ModelInstance *handle)
{
    struct plugin_instance *i = instance_check(handle);
    if (i->state) /* NULL if its initialization failed */
        close_context(i, i->state);
    return NULL;
}

/* These libraries get tensors in the memory of the host alone. */
static TRITONSERVER_Error *custom_backend_attribute(TRITONBACKEND_Backend *backend,
                                                    TRITONBACKEND_BackendAttribute *attributes)
{
    (void)backend;
    return (TRITONSERVER_Error *)attribute_add_wish(
        attribute_check(attributes), INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_CPU, 0, NULL, 0);
}

const struct backend_builtin custom_backend = {
    .name = "custom",
    .entries = {.attribute = custom_backend_attribute,
                .model_initialize = model_begin,
                .model_finalize = model_end,
                .instance_initialize = custom_begin_instance,
                .instance_finalize = instance_end,
                .run = custom_run},
};
