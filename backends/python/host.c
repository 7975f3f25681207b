#include "host.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asked.h"
#include "common/berr.h"
#include "execute.h"
#include "lend.h"
#include "metrics.h"
#include "nested.h"

/* How long finalize and the end of the process may take. */
static const uint64_t END_NS = 30000000000;

static void host_result(struct host *host, struct heard *heard)
{
    struct wire_in in = {.at = heard->data, .bytes = heard->bytes};
    free(host->result);
    host->result_well = wire_u32(&in);
    host->result = host->result_well ? strdup(wire_text(&in, NULL)) : wire_said(&in);
    host->has_result = true;
}

/* What a stub sends. */
static void host_heard(void *of, struct heard *heard)
{
    struct host *host = of;
    switch ((enum link_kind)heard->kind) {
    case LINK_RESULT:
        host_result(host, heard);
        break;
    case LINK_EXECUTED:
        execute_heard(host, heard);
        break;
    case LINK_SEND:
        execute_send(host, heard);
        break;
    case LINK_DROP:
        execute_drop(host, heard->id);
        break;
    case LINK_INFER:
        nested_begin(host, heard);
        break;
    case LINK_CALL:
        asked_heard(host, heard);
        break;
    case LINK_FREE:
        lend_end(host->lend, heard->id);
        break;
    case LINK_PAD:
    case LINK_COMPLETE:
    case LINK_INITIALIZE:
    case LINK_EXECUTE:
    case LINK_FINALIZE:
    case LINK_REPLY:
    case LINK_NESTED:
    case LINK_RELEASE:
    case LINK_HELLO:
    case LINK_ROOM:
    case LINK_KINDS:
    case LINK_KEPT:
    case LINK_FAR:
    default:
        break; /* none of a stub's, or stub.c's */
    }
}

/* The requests that a stub owed responses to are answered with an error. */
static void host_answer_open(struct host *host)
{
    for (size_t i = 0; i < host->handle_count; i++) {
        struct handle *handle = &host->handles[i];
        TRITONBACKEND_Response *response;
        if (!handle->id || handle->request)
            continue;
        if (!handle->closed && handle->factory) {
            TRITONSERVER_Error *told = host_unhealthy(host, STUB_DEAD);
            TRITONSERVER_Error *err =
                TRITONBACKEND_ResponseNewFromFactory(&response, handle->factory);
            if (!err)
                err = TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                                                 told);
            berr_log(err, "cannot answer a request of a process that ended");
            TRITONSERVER_ErrorDelete(told);
        }
        handle_free(handle);
    }
}

static void host_ended(void *of)
{
    struct host *host = of;
    if (!host->batch)
        host_answer_open(host);
    nested_cancel_all(host);
}

TRITONSERVER_Error *host_unhealthy(const struct host *host, enum stub_wait why)
{
    const char *what = why == STUB_LATE
                           ? " It took longer than the model's EXECUTE_TIMEOUT_SECONDS."
                       : why == STUB_STOPPED ? " A signal has stopped it."
                                             : " It has ended.";
    return berr_new(
        TRITONSERVER_ERROR_INTERNAL,
        "Failed to process the request(s) for model instance '%s', message: Stub process "
        "'%s' is not healthy.%s",
        host->name, host->name, what);
}

void host_begin(struct host *host)
{
    pthread_mutex_lock(&host->lock);
    host->busy++;
    pthread_mutex_unlock(&host->lock);
}

void host_end(struct host *host)
{
    pthread_mutex_lock(&host->lock);
    if (--host->busy == 0)
        pthread_cond_broadcast(&host->idle);
    pthread_mutex_unlock(&host->lock);
}

static void host_wait_idle(struct host *host)
{
    nested_cancel_all(host);
    pthread_mutex_lock(&host->lock);
    while (host->busy)
        pthread_cond_wait(&host->idle, &host->lock);
    pthread_mutex_unlock(&host->lock);
}

TRITONSERVER_Error *host_restart(struct host *host)
{
    const struct model *model = host->model;
    const char *activate = model->environment ? environment_activate(model->environment) : NULL;
    return stub_start(model->runtime->options, host->name, activate, host->bell, host_heard,
                      host_ended, host, &host->stub);
}

static void host_destroy(struct host *host)
{
    pthread_mutex_destroy(&host->lock);
    pthread_cond_destroy(&host->idle);
    if (host->allocator)
        berr_drop(TRITONSERVER_ResponseAllocatorDelete(host->allocator));
    lend_close(host->lend);
    free(host->result);
    free(host->handles);
    execute_forget(host);
    if (host->bell >= 0)
        close(host->bell);
    free(host->name);
    free(host);
}

TRITONSERVER_Error *host_new(struct model *model, const char *name, struct host **ret_host)
{
    struct host *host = calloc(1, sizeof *host);
    if (!host)
        return berr_no_memory();
    host->model = model;
    pthread_mutex_init(&host->lock, NULL);
    pthread_cond_init(&host->idle, NULL);
    host->name = strdup(name);
    host->bell = stub_bell();
    TRITONSERVER_Error *err = NULL;
    if (!host->name)
        err = berr_no_memory();
    else if (host->bell < 0)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "no descriptor for '%s': %s", name,
                       strerror(errno));
    if (!err)
        err = host_restart(host);
    if (err)
        host_destroy(host);
    else
        *ret_host = host;
    return err;
}

TRITONSERVER_Error *host_rename(struct host *host, const char *name)
{
    char *copy = strdup(name);
    char *other = copy ? strdup(name) : NULL;
    if (!other) {
        free(copy);
        return berr_no_memory();
    }
    stub_hold(host->stub);
    free(host->name);
    host->name = copy;
    stub_rename(host->stub, other);
    stub_let(host->stub);
    return NULL;
}

static TRITONSERVER_Error *host_told(struct host *host, enum stub_wait came, char **ret_text)
{
    if (came != STUB_DONE)
        return host_unhealthy(host, came);
    if (!host->result)
        return berr_no_memory();
    if (!host->result_well)
        return berr_new(TRITONSERVER_ERROR_INTERNAL, "%s", host->result);
    if (ret_text) {
        *ret_text = host->result;
        host->result = NULL;
    }
    return NULL;
}

TRITONSERVER_Error *host_ask(struct host *host, uint32_t kind, uint64_t id,
                             const char *const *texts, size_t count, uint64_t deadline_ns,
                             char **ret_text)
{
    struct wire_out out = {0};
    wire_put_u32(&out, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        wire_put_text(&out, texts[i], strlen(texts[i]));
    stub_hold(host->stub);
    host->has_result = false;
    enum stub_wait came = STUB_DEAD;
    if (!out.failed && stub_send(host->stub, kind, id, out.at, out.used))
        came = stub_wait(host->stub, &host->has_result, deadline_ns);
    TRITONSERVER_Error *err = host_told(host, came, ret_text);
    stub_let(host->stub);
    wire_fini(&out);
    return err;
}

void host_lost(struct host *host)
{
    if (!host->stub)
        return;
    stub_kill(host->stub);
    stub_hold(host->stub);
    host->stub->heard = NULL;
    host->stub->ended = NULL;
    host_answer_open(host);
    metrics_free(host);
    stub_let(host->stub);
    nested_cancel_all(host);
    stub_end(host->stub);
    host->stub = NULL;
    lend_end_all(host->lend);
}

void host_give(struct host *host, uint64_t place)
{
    if (!arena_give(&host->stub->arena, place))
        lend_end(host->lend, place);
}

void host_lost_and_free(struct host *host)
{
    if (!host)
        return;
    host_lost(host);
    host_wait_idle(host);
    host_destroy(host);
}

void host_free(struct host *host)
{
    if (!host)
        return;
    if (host->stub && !atomic_load(&host->stub->dead)) {
        atomic_store(&host->stub->leaving, true);
        berr_log(host_ask(host, LINK_FINALIZE, 0, NULL, 0, stub_now() + END_NS, NULL), "finalize");
        /* It ends by itself, with what the model does at the interpreter's end. */
        const bool never = false;
        stub_hold(host->stub);
        stub_wait(host->stub, &never, stub_now() + END_NS);
        stub_let(host->stub);
    }
    host_lost_and_free(host);
}

/* -- handles -- */

enum { HANDLE_SLOTS = 1 << 20 }; /* an id is a multiple of this and a slot's number */

static bool handle_room(struct host *host, size_t *ret_slot)
{
    size_t slot = 0;
    while (slot < host->handle_count && host->handles[slot].id)
        slot++;
    if (slot == host->handle_cap) {
        size_t cap = host->handle_cap ? host->handle_cap * 2 : 16;
        struct handle *handles =
            cap <= HANDLE_SLOTS ? realloc(host->handles, cap * sizeof *handles) : NULL;
        if (!handles)
            return false;
        host->handles = handles;
        host->handle_cap = cap;
    }
    if (slot == host->handle_count)
        host->handle_count++;
    *ret_slot = slot;
    return true;
}

uint64_t handle_new(struct host *host, TRITONBACKEND_Request *request)
{
    size_t slot;
    if (!handle_room(host, &slot))
        return 0;
    uint64_t id = ++host->last_handle * HANDLE_SLOTS + slot;
    host->handles[slot] = (struct handle){.id = id, .request = request};
    return id;
}

struct handle *handle_find(struct host *host, uint64_t id)
{
    size_t slot = id % HANDLE_SLOTS;
    bool there = id && slot < host->handle_count && host->handles[slot].id == id;
    return there ? &host->handles[slot] : NULL;
}

void handle_free(struct handle *handle)
{
    if (handle->factory)
        berr_log(TRITONBACKEND_ResponseFactoryDelete(handle->factory),
                 "cannot delete a response factory");
    *handle = (struct handle){0};
}

TRITONSERVER_Error *handle_is_cancelled(const struct handle *handle, bool *ret_cancelled)
{
    *ret_cancelled = false;
    if (handle->factory)
        return TRITONBACKEND_ResponseFactoryIsCancelled(handle->factory, ret_cancelled);
    return handle->request ? TRITONBACKEND_RequestIsCancelled(handle->request, ret_cancelled)
                           : NULL;
}

bool handle_all_cancelled(const struct host *host)
{
    bool cancelled = false;
    for (size_t i = 0; i < host->handle_count; i++) {
        const struct handle *handle = &host->handles[i];
        if (!handle->id || handle->closed)
            continue;
        berr_drop(handle_is_cancelled(handle, &cancelled));
        if (!cancelled)
            return false;
    }
    return cancelled;
}

TRITONSERVER_Error *handle_factory(struct handle *handle,
                                   TRITONBACKEND_ResponseFactory **ret_factory)
{
    TRITONSERVER_Error *err = NULL;
    if (!handle->factory && handle->request)
        err = TRITONBACKEND_ResponseFactoryNew(&handle->factory, handle->request);
    else if (!handle->factory)
        err = berr_new(TRITONSERVER_ERROR_INTERNAL, "the request has had its last response");
    if (!err)
        *ret_factory = handle->factory;
    return err;
}
