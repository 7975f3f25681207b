/* Any bytes from the process of an isolated model: packets are joined to frames, and frames are
 * split into records. Three requests are in flight; for every input, each is answered once and
 * released once, and no memory leaks.
 *
 * The first byte chooses: 1 = an order waits for a reply; 2 = the rest is packets, each after a
 * length of one byte (255 = the whole rest), which go through a socket; else the rest is one frame
 * of records. The numbers 0, 1 and 2 in records are replaced by the ids of the requests. */
#include "base/budget.h"
#include "base/check.h"
#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "isolate/isolate_flight.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_records.h"
#include "isolate/isolate_session.h"
#include "model/config.h"
#include "os/packet.h"
#include "plugin/attribute.h"
#include "plugin/usage.h"

#include <string.h>

#define REQUESTS 3u

struct fate {
    unsigned finals;
    unsigned releases;
};

static struct isolate_session *session;
static struct request_target target;
static struct fate fates[REQUESTS];
static uint64_t ids[REQUESTS];
/* reading outputs stores here, so that the compiler keeps the reads */
static volatile uint8_t seen;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unpin(struct request_target *t)
{
    (void)t;
}

static void respond(struct response *r, void *owner)
{
    struct fate *f = owner;
    f->finals += (r->flags & RESPONSE_FINAL) != 0;
    for (const struct tensor_output *o = r->outputs; o; o = o->next)
        for (uint64_t i = 0; i < o->byte_size; i++)
            seen ^= ((const uint8_t *)o->data)[i];
    response_free(r);
}

static void released(struct request *r, void *owner)
{
    (void)r;
    ((struct fate *)owner)->releases++;
}

static void prepare(void)
{
    static const char text[] = "name: 'x' backend: 'y' max_batch_size: 0 "
                               "input { name: 'I' data_type: TYPE_FP32 dims: [ -1 ] } "
                               "output { name: 'O' data_type: TYPE_FP32 dims: [ -1 ] }";
    const struct isolate_settings settings = {.memory_bytes = 1 << 20};
    struct Inference__ModelConfig *proto;
    struct model_config *config;
    CHECK(!config_parse_text(text, strlen(text), "config.pbtxt", &proto));
    CHECK(!config_compile(&proto, &config));
    target = (struct request_target){.config = config, .unpin = unpin};
    CHECK(!isolate_session_new("model 'x' version 1", "/bin/true", &settings, &session));
    spawn_reap(&session->process);
    session->stats = stats_new();
}

static void take_off(void)
{
    memset(fates, 0, sizeof(fates));
    session->flights.closed = false;
    for (unsigned i = 0; i < REQUESTS; i++) {
        uint64_t offset = 0;
        uint64_t bytes = i ? 0 : 5000;
        struct request *r = request_new(&target, NULL, respond, &fates[i]);
        r->released = released;
        r->with_backend = true;
        if (bytes)
            CHECK(!isolate_session_take(session, bytes, &offset));
        ids[i] = isolate_flight_add(session, r, offset, bytes, 0);
        CHECK(ids[i]);
        isolate_flight_launch(session, ids[i]);
    }
}

static void land(void)
{
    struct err *e = err_new(STATUS_INTERNAL, "its process ended");
    isolate_flight_fail_all(session, e);
    err_free(e);
    for (unsigned i = 0; i < REQUESTS; i++)
        CHECK(fates[i].finals == 1 && fates[i].releases == 1);
    CHECK(isolate_flight_count(session) == 0);
}

/* Replace 0, 1 and 2 in records by the ids of the requests, which a fuzzer cannot guess. */
static void name_requests(uint8_t *bytes, size_t len)
{
    struct isolate_wire w;
    isolate_wire_read(&w, bytes, len);
    while (isolate_wire_left(&w)) {
        uint64_t kind = isolate_wire_get(&w);
        uint64_t body_len;
        const void *body = isolate_wire_get_bytes(&w, &body_len);
        uint64_t i;
        if (w.bad || kind < RECORD_RESPONSE || body_len < sizeof(i))
            continue;
        memcpy(&i, body, sizeof(i));
        if (i < REQUESTS)
            memcpy(bytes + ((const uint8_t *)body - bytes), &ids[i], sizeof(i));
    }
}

static bool apply(const uint8_t *bytes, size_t len, bool replies)
{
    struct attribute attributes;
    struct usage usage;
    char *config = NULL;
    int policy = 0;
    attribute_init(&attributes);
    usage_init(&usage);
    struct isolate_reply reply = {
        .attributes = &attributes, .policy = &policy, .config = &config, .usage = &usage};
    /* exact size, so that a sanitizer reports a read past the end */
    uint8_t *exact = mem_alloc_aligned(len ? len : 1, 64);
    if (len)
        memcpy(exact, bytes, len);
    name_requests(exact, len);
    bool ok = isolate_records_apply(session, exact, len, replies ? &reply : NULL);
    mem_free(exact);
    err_free(reply.err);
    mem_free(config);
    usage_fini(&usage);
    return ok;
}

/* Receive all packets before the next one is sent, so that none waits in the socket. */
static void packets(const uint8_t *data, size_t size)
{
    int ends[2];
    struct isolate_frame frame;
    enum isolate_frame_result r = ISOLATE_FRAME_NONE;
    CHECK(!packet_pair(ends));
    isolate_frame_init(&frame, NULL);
    while (size && r != ISOLATE_FRAME_BAD) {
        size_t len = *data == 255 ? size - 1 : *data;
        data++;
        size--;
        len = len < size ? len : size;
        len = len < PACKET_MAX_BYTES ? len : PACKET_MAX_BYTES;
        struct iovec piece = {(void *)(uintptr_t)data, len};
        CHECK(!len || packet_send(ends[0], &piece, 1, NULL, 0, false));
        data += len;
        size -= len;
        const uint8_t *whole;
        size_t whole_len;
        while ((r = isolate_frame_receive(&frame, ends[1], false, false, &whole, &whole_len)) ==
               ISOLATE_FRAME_OK) {
            CHECK(whole_len && whole_len <= ISOLATE_FRAME_MAX && (uintptr_t)whole % 64 == 0);
            if (!apply(whole, whole_len, false))
                r = ISOLATE_FRAME_BAD;
            if (r == ISOLATE_FRAME_BAD)
                break;
        }
        CHECK(r != ISOLATE_FRAME_GONE);
    }
    isolate_frame_fini(&frame);
    packet_close(ends[0]);
    packet_close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (!session)
        prepare();
    take_off();
    if (data[0] == 2)
        packets(data + 1, size - 1);
    else
        apply(data + 1, size - 1, data[0] == 1);
    land();
    CHECK(budget_in_use() == 0);
    return 0;
}
