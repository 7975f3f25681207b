#pragma once
/* A program that embeds the server, seen through the public headers alone: a repository in a
 * temporary directory, a server, and requests that are waited for. */
#include "triton/core/tritonserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* HOST_OK(call) - the call succeeds. */
#define HOST_OK(call) host_ok((call), #call, __FILE__, __LINE__)
void host_ok(TRITONSERVER_Error *e, const char *call, const char *file, int line);

/* HOST_FAILS(call, code, part) - the call fails with this code, and a message that contains
 * `part`. */
#define HOST_FAILS(call, code, part) host_fails((call), (code), (part), #call, __FILE__, __LINE__)
void host_fails(TRITONSERVER_Error *e, TRITONSERVER_Error_Code code, const char *part,
                const char *call, const char *file, int line);

/* A model repository. */
struct host_repository {
    char path[64];
};

void host_repository_make(struct host_repository *r);

/* host_repository_add - a model with an empty version 1; config: text of its config.pbtxt, NULL
 * = none. */
void host_repository_add(const struct host_repository *r, const char *model, const char *config);
void host_repository_write(const struct host_repository *r, const char *file, const char *text);
void host_repository_remove(struct host_repository *r);

/* host_options - quiet, the repository, and the backends of the build tree below `backends`
 * ("backends" or "tests/backends"). */
TRITONSERVER_ServerOptions *host_options(const char *repository, const char *backends);

/* host_server - a server made of options, which are freed. */
TRITONSERVER_Server *host_server(TRITONSERVER_ServerOptions *options);

/* What happened to one request. Guarded by the lock inside; read it after host_call_wait. */
struct host_call {
    TRITONSERVER_InferenceRequest *request;
    TRITONSERVER_ResponseAllocator *allocator;
    TRITONSERVER_InferenceResponse *responses[16];
    uint32_t flags[16];
    unsigned callbacks; /* of the response function */
    unsigned finals;
    unsigned releases;
    uint32_t release_flags;
    unsigned allocated, given_back, started, described, queried;
    TRITONSERVER_MemoryType pretended; /* what the allocator says of memory on the host */
    const char *refuse;                /* what the allocator answers; NULL = memory */
    /* memory of GPU 0, for outputs that are wanted on a GPU; NULL = all are on the host */
    void *(*gpu_get)(size_t bytes);
    void (*gpu_put)(void *memory);
    char pad[8];
    void *sync;
};

/* host_call_make - a request for a model, with an allocator and callbacks; host_call_free - and
 * its responses. */
void host_call_make(struct host_call *c, TRITONSERVER_Server *s, const char *model);
void host_call_make_of(struct host_call *c, TRITONSERVER_Server *s, const char *model,
                       int64_t version);
void host_call_free(struct host_call *c);

/* host_call_input - an FP32 input of [1, n] or [n] whose bytes the caller keeps. */
void host_call_input(struct host_call *c, const char *name, const int64_t *shape, uint64_t rank,
                     const float *data, size_t count);

/* host_call_run - send, and wait until the final response and the release have come. */
void host_call_run(struct host_call *c, TRITONSERVER_Server *s, TRITONSERVER_InferenceTrace *trace);
void host_call_wait(struct host_call *c);

/* host_call_forget - free the responses that came, and count anew. */
void host_call_forget(struct host_call *c);

/* host_output - output `index` of the response as floats. */
const float *host_output(TRITONSERVER_InferenceResponse *r, uint32_t index, size_t *ret_count);

/* host_text - the text of a message, which is freed; the caller's (free). */
char *host_text(TRITONSERVER_Message *m);
