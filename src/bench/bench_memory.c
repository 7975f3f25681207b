#include "bench/bench_memory.h"

#include "base/mem.h"
#include "bench/bench_wire.h"
#include "os/entropy.h"
#include "os/shm.h"
#include "os/shm_named.h"

#include <inttypes.h>
#include <proto/grpc_service.pb-c.h>
#include <stdio.h>
#include <string.h>

#define ALIGNMENT 64u

struct bench_memory {
    const struct bench_options *options;
    struct bench_wire *wire;
    char name[48]; /* of the region; with a slash in front the key of the memory */
    bool registered;
};

static void memory_ask_http(const struct bench_memory *m, uint64_t bytes, struct strbuf *to)
{
    struct strbuf body = STRBUF_INIT;
    if (bytes)
        strbuf_printf(&body, "{\"key\":\"/%s\",\"offset\":0,\"byte_size\":%" PRIu64 "}", m->name,
                      bytes);
    strbuf_printf(to,
                  "POST /v2/systemsharedmemory/region/%s/%s HTTP/1.1\r\nHost: %s\r\n"
                  "Content-Length: %zu\r\n\r\n%s",
                  m->name, bytes ? "register" : "unregister", bench_options_authority(m->options),
                  body.len, strbuf_str(&body));
    strbuf_fini(&body);
}

/* Unregistering has the first of the fields. */
static void memory_ask_grpc(struct bench_memory *m, uint64_t bytes, struct strbuf *to)
{
    char key[sizeof(m->name) + 1];
    Inference__SystemSharedMemoryRegisterRequest r =
        INFERENCE__SYSTEM_SHARED_MEMORY_REGISTER_REQUEST__INIT;
    snprintf(key, sizeof(key), "/%s", m->name);
    r.name = m->name;
    if (bytes) {
        r.key = key;
        r.byte_size = bytes;
    }
    bench_wire_put(to, &r.base);
}

/* Registers `bytes`; 0 = unregisters. */
static struct err *memory_tell(struct bench_memory *m, uint64_t bytes)
{
    struct bench_call c = {0};
    struct strbuf question = STRBUF_INIT;
    struct bench_lane *lane = NULL;
    struct err *e = bench_wire_lane(m->wire, BENCH_LANE_UNARY, &lane);
    if (e)
        return e;
    c.path = bytes ? "/inference.GRPCInferenceService/SystemSharedMemoryRegister"
                   : "/inference.GRPCInferenceService/SystemSharedMemoryUnregister";
    if (m->options->protocol == BENCH_HTTP)
        memory_ask_http(m, bytes, &question);
    else
        memory_ask_grpc(m, bytes, &question);
    c.pieces[0] = (struct iovec){question.data, question.len};
    e = bench_wire_ask(m->wire, lane, &c);
    lane->free(lane);
    strbuf_fini(&c.answer);
    strbuf_fini(&question);
    return e;
}

/* Gives each tensor its place; returns the bytes of all. */
static uint64_t memory_lay_out(const struct bench_memory *m, struct bench_data *d)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < d->step_count; i++)
        for (uint32_t k = 0; k < d->steps[i].tensor_count; k++) {
            struct bench_tensor *t = &d->steps[i].tensors[k];
            t->region = m->name;
            t->offset = bytes;
            bytes += (t->len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
    return bytes ? bytes : ALIGNMENT;
}

static struct err *memory_fill(int fd, uint64_t bytes, const struct bench_data *d)
{
    char *at = shm_map(fd, (size_t)bytes);
    if (!at)
        return err_new(STATUS_UNAVAILABLE, "no room for %" PRIu64 " bytes of shared memory", bytes);
    for (uint32_t i = 0; i < d->step_count; i++)
        for (uint32_t k = 0; k < d->steps[i].tensor_count; k++) {
            const struct bench_tensor *t = &d->steps[i].tensors[k];
            memcpy(at + t->offset, t->bytes, t->len);
        }
    shm_unmap(at, (size_t)bytes);
    return NULL;
}

struct err *bench_memory_share(const struct bench_options *o, struct bench_wire *w,
                               struct bench_data *d, struct bench_memory **ret)
{
    struct bench_memory *m = MEM_NEW(struct bench_memory);
    uint64_t random;
    int fd;
    m->options = o;
    m->wire = w;
    entropy_bytes(&random, sizeof(random));
    snprintf(m->name, sizeof(m->name), "nereid_bench_%016" PRIx64, random);
    uint64_t bytes = memory_lay_out(m, d);
    struct err *e = shm_named_create(m->name, bytes, &fd);
    if (!e) {
        e = memory_fill(fd, bytes, d);
        if (!e)
            e = memory_tell(m, bytes);
        m->registered = !e || err_code(e) == STATUS_CANCELLED; /* the server may have it */
        /* The server has it open now: nothing is left behind, however this process ends. */
        shm_named_remove(m->name);
        shm_close(fd);
    }
    *ret = m;
    return err_wrap(e, "option --shared-memory");
}

void bench_memory_free(struct bench_memory *m)
{
    if (!m)
        return;
    if (m->registered)
        err_free(memory_tell(m, 0));
    mem_free(m);
}
