/* TRITONSERVER_Server functions that change which models are there. */
#include "plugin/handle.h"
#include "base/log.h"
#include "base/mem.h"
#include "abi/parameter.h"
#include "os/loop.h"
#include "os/thread.h"
#include "repo/repo.h"
#include "server/embed.h"
#include "server/server.h"

#include <string.h>

#define MAX_PARAMETERS 65536u

static const char type[] = "TRITONSERVER_Server";

/* Answers calls that map names to repositories. The server does not support them, so each gets
 * an error that says why. */
static TRITONSERVER_Error *no_registration(const char *function, TRITONSERVER_Server *server,
                                           const char *path)
{
    if (!embed_server_of(server))
        return handle_invalid(type);
    if (!path)
        return handle_null(function, "repository_path");
    return handle_error(
        err_new(STATUS_UNSUPPORTED,
                "repository '%s': repositories cannot come and go while the server runs", path));
}

static TRITONSERVER_Error *check_mapping(const TRITONSERVER_Parameter **name_mapping,
                                         uint32_t count)
{
    if (!name_mapping && count)
        return handle_error(err_new(
            STATUS_INVALID_ARG, "model mappings are not provided while mapping count is non-zero"));
    for (uint32_t i = 0; i < count; i++) {
        const struct parameter *p = parameter_of(name_mapping[i]);
        if (!p)
            return handle_invalid("TRITONSERVER_Parameter");
        if (p->p.type != PARAM_STRING)
            return handle_error(err_new(
                STATUS_INVALID_ARG, "Mapped model name must be a string, found another type for %s",
                p->p.name));
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerRegisterModelRepository(TRITONSERVER_Server *server, const char *repository_path,
                                           const TRITONSERVER_Parameter **name_mapping,
                                           const uint32_t mapping_count)
{
    TRITONSERVER_Error *e = check_mapping(name_mapping, mapping_count);
    return e ? e : no_registration(__func__, server, repository_path);
}

TRITONSERVER_Error *TRITONSERVER_ServerUnregisterModelRepository(TRITONSERVER_Server *server,
                                                                 const char *repository_path)
{
    return no_registration(__func__, server, repository_path);
}

/* Refuses to wait on a network thread: the loaders may need that thread. */
static struct err *repository_abi_may_wait(void)
{
    return loop_current()
               ? err_new(STATUS_UNSUPPORTED, "models cannot be waited for on a network thread")
               : NULL;
}

TRITONSERVER_Error *TRITONSERVER_ServerPollModelRepository(TRITONSERVER_Server *server)
{
    struct server *s = embed_server_of(server);
    if (!s)
        return handle_invalid(type);
    if (s->options->control_mode != OPTIONS_CONTROL_POLL)
        return handle_error(err_new(STATUS_UNAVAILABLE, "polling is disabled"));
    return handle_error(err_new(STATUS_UNSUPPORTED,
                                "the server looks at its repositories by itself, every %u seconds",
                                s->options->poll_secs));
}

TRITONSERVER_Error *TRITONSERVER_ServerLoadModel(TRITONSERVER_Server *server,
                                                 const char *model_name)
{
    return TRITONSERVER_ServerLoadModelWithParameters(server, model_name, NULL, 0);
}

static struct err *read_parameter(const TRITONSERVER_Parameter *handle, struct repo_param *ret)
{
    const struct parameter *p = parameter_of(handle);
    if (!p)
        return err_new(STATUS_INVALID_ARG, "expected a TRITONSERVER_Parameter");
    bool config = strcmp(p->p.name, "config") == 0;
    bool file = strncmp(p->p.name, "file:", 5) == 0;
    if (config && p->p.type != PARAM_STRING)
        return err_new(STATUS_INVALID_ARG,
                       "Config parameter 'config' must have string type for its value");
    if (file && p->p.type != PARAM_BYTES)
        return err_new(STATUS_INVALID_ARG, "File parameter '%s' must have bytes type for its value",
                       p->p.name);
    if (!config && !file)
        return err_new(STATUS_INVALID_ARG, "Unrecognized load parameter '%s'", p->p.name);
    *ret = (struct repo_param){.kind = config ? REPO_PARAM_CONFIG : REPO_PARAM_FILE,
                               .name = config ? p->p.name : p->p.name + 5,
                               .data = p->p.bytes.data,
                               .len = p->p.bytes.len};
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_ServerLoadModelWithParameters(TRITONSERVER_Server *server, const char *model_name,
                                           const TRITONSERVER_Parameter **parameters,
                                           const uint64_t parameter_count)
{
    struct server *s = embed_server_of(server);
    if (!s || !model_name)
        return s ? HANDLE_NULL("model_name") : handle_invalid(type);
    if (!parameters && parameter_count)
        return handle_error(
            err_new(STATUS_INVALID_ARG,
                    "load parameters are not provided while parameter count is non-zero"));
    if (parameter_count > MAX_PARAMETERS)
        return handle_error(
            err_new(STATUS_INVALID_ARG, "expected at most %u load parameters", MAX_PARAMETERS));
    struct err *e = repository_abi_may_wait();
    struct repo_param *list = mem_zalloc((parameter_count + 1) * sizeof(*list));
    for (uint64_t i = 0; !e && i < parameter_count; i++)
        e = read_parameter(parameters[i], &list[i]);
    if (!e)
        e = repo_load_wait(s->repo, &(struct repo_load){.model = model_name,
                                                        .params = list,
                                                        .param_count = parameter_count});
    mem_free(list);
    return handle_error(e);
}

static void repository_abi_forget(void *owner, struct err *e)
{
    mem_free(owner);
    if (e)
        LOG_ERROR("unload: %s", err_message(e));
    err_free(e);
}

static TRITONSERVER_Error *unload(const char *function, TRITONSERVER_Server *server,
                                  const char *model_name, bool dependents)
{
    struct server *s = embed_server_of(server);
    if (!s || !model_name)
        return s ? handle_null(function, "model_name") : handle_invalid(type);
    if (!thread_is_of_server()) /* without waiting: the next caller finds the model gone */
        return handle_error(repo_unload_wait(s->repo, model_name, NULL, dependents));
    char *name = mem_strdup(model_name); /* a model may unload itself, so it must not wait */
    struct err *e = repo_unload(s->repo, name, NULL, dependents, repository_abi_forget, name);
    if (e)
        mem_free(name);
    return handle_error(e);
}

TRITONSERVER_Error *TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server *server,
                                                   const char *model_name)
{
    return unload(__func__, server, model_name, false);
}

TRITONSERVER_Error *TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server *server,
                                                                const char *model_name)
{
    return unload(__func__, server, model_name, true);
}
