#include "net/access.h"

#include "base/mem.h"
#include "os/sock.h"
#include "server/access_log.h"

struct access *access_begin(int fd, const char *protocol, const char *method)
{
    if (!access_log_on())
        return NULL;
    struct access *a = MEM_NEW(struct access);
    a->begun = clock_now_ns();
    a->protocol = protocol;
    a->method = method;
    sock_peer(fd, a->peer, sizeof(a->peer));
    return a;
}

void access_about(struct access *a, const char *model, size_t model_len, const char *id,
                  size_t id_len)
{
    if (!a)
        return;
    mem_free(a->model);
    mem_free(a->id);
    /* Copies one byte more than is written, so that a cut value is recognized. */
    size_t most = ACCESS_LOG_VALUE_BYTES + 1;
    a->model = mem_strndup(model, model_len < most ? model_len : most);
    a->id = mem_strndup(id, id_len < most ? id_len : most);
}

void access_end(struct access *a, const char *route, int status)
{
    if (!a)
        return;
    access_log_put(&(struct access_entry){
        .peer = a->peer,
        .protocol = a->protocol,
        .method = a->method,
        .route = route,
        .model = a->model ? a->model : "",
        .id = a->id ? a->id : "",
        .status = status,
        .in_bytes = a->in_bytes,
        .out_bytes = a->out_bytes,
        .duration_ns = clock_now_ns() - a->begun,
    });
    mem_free(a->model);
    mem_free(a->id);
    mem_free(a);
}
