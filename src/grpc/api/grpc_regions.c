#include "grpc/api/grpc_regions.h"

#include "base/mem.h"
#include "grpc/api/grpc_control.h"
#include "grpc/api/grpc_repository.h"
#include "grpc/grpc_conn.h"
#include "nereid/cuda_driver.h"
#include "net/control_task.h"
#include "proto/grpc_service.pb-c.h"
#include "regions/region.h"
#include "regions/regions_order.h"
#include "server/server.h"
#include "server/worker.h"

#include <string.h>

typedef Inference__SystemSharedMemoryStatusResponse told_message;
typedef Inference__SystemSharedMemoryStatusResponse__RegionsEntry told_entry;
typedef Inference__SystemSharedMemoryStatusResponse__RegionStatus told_status;

static struct regions *grpc_regions_of(const struct grpc_stream *s)
{
    return s->conn->home->worker->server->regions;
}

static struct regions_name as_region_name(const char *text)
{
    return (struct regions_name){text, strlen(text)};
}

/* A region in the answer, with what it is made of. */
struct told {
    told_entry entry;
    told_status status;
};

static void answer_regions(struct grpc_stream *s, struct region **list, size_t count)
{
    told_message message = INFERENCE__SYSTEM_SHARED_MEMORY_STATUS_RESPONSE__INIT;
    struct told *told = mem_zalloc((count + 1) * sizeof(*told));
    message.regions = mem_alloc((count + 1) * sizeof(*message.regions));
    message.n_regions = count;
    for (size_t i = 0; i < count; i++) {
        told_status *status = &told[i].status;
        inference__system_shared_memory_status_response__region_status__init(status);
        status->name = list[i]->name;
        status->key = list[i]->key;
        status->offset = list[i]->offset;
        status->byte_size = list[i]->byte_size;
        inference__system_shared_memory_status_response__regions_entry__init(&told[i].entry);
        told[i].entry.key = list[i]->name;
        told[i].entry.value = status;
        message.regions[i] = &told[i].entry;
    }
    grpc_control_answer(s, NULL, &message.base);
    mem_free(message.regions);
    mem_free(told);
}

/* Answers with one region of a kind, or with all where no name is given. */
static void grpc_regions_tell(struct grpc_stream *s, enum region_kind kind, const char *name,
                              void (*answer)(struct grpc_stream *s, struct region **list,
                                             size_t count))
{
    struct region **list = NULL;
    size_t count = 0;
    struct err *e = regions_list(grpc_regions_of(s), kind, as_region_name(name), &list, &count);
    if (e)
        grpc_control_answer(s, e, NULL);
    else
        answer(s, list, count);
    regions_list_free(list, count);
}

void grpc_regions_status(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m = grpc_control_unpack(
        s, &inference__system_shared_memory_status_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__SystemSharedMemoryStatusRequest *in =
        (const Inference__SystemSharedMemoryStatusRequest *)m;
    grpc_regions_tell(s, REGION_SYSTEM, in->name, answer_regions);
    protobuf_c_message_free_unpacked(m, NULL);
}

void grpc_regions_register(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf **buf)
{
    static const Inference__SystemSharedMemoryRegisterResponse done =
        INFERENCE__SYSTEM_SHARED_MEMORY_REGISTER_RESPONSE__INIT;
    (void)buf;
    ProtobufCMessage *m = grpc_control_unpack(
        s, &inference__system_shared_memory_register_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__SystemSharedMemoryRegisterRequest *in =
        (const Inference__SystemSharedMemoryRegisterRequest *)m;
    struct err *e = regions_register(grpc_regions_of(s), as_region_name(in->name), in->key,
                                     in->offset, in->byte_size);
    protobuf_c_message_free_unpacked(m, NULL);
    grpc_control_answer(s, e, &done.base);
}

void grpc_regions_unregister(struct grpc_stream *s, const uint8_t *data, size_t len,
                             struct buf **buf)
{
    static const Inference__SystemSharedMemoryUnregisterResponse done =
        INFERENCE__SYSTEM_SHARED_MEMORY_UNREGISTER_RESPONSE__INIT;
    (void)buf;
    ProtobufCMessage *m = grpc_control_unpack(
        s, &inference__system_shared_memory_unregister_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__SystemSharedMemoryUnregisterRequest *in =
        (const Inference__SystemSharedMemoryUnregisterRequest *)m;
    struct err *e = regions_unregister(grpc_regions_of(s), REGION_SYSTEM, as_region_name(in->name));
    protobuf_c_message_free_unpacked(m, NULL);
    grpc_control_answer(s, e, &done.base);
}

typedef Inference__CudaSharedMemoryStatusResponse cuda_message;
typedef Inference__CudaSharedMemoryStatusResponse__RegionsEntry cuda_entry;
typedef Inference__CudaSharedMemoryStatusResponse__RegionStatus cuda_status;

struct cuda_told {
    cuda_entry entry;
    cuda_status status;
};

static void answer_cuda_regions(struct grpc_stream *s, struct region **list, size_t count)
{
    cuda_message message = INFERENCE__CUDA_SHARED_MEMORY_STATUS_RESPONSE__INIT;
    struct cuda_told *told = mem_zalloc((count + 1) * sizeof(*told));
    message.regions = mem_alloc((count + 1) * sizeof(*message.regions));
    message.n_regions = count;
    for (size_t i = 0; i < count; i++) {
        cuda_status *status = &told[i].status;
        inference__cuda_shared_memory_status_response__region_status__init(status);
        status->name = list[i]->name;
        status->device_id = (uint64_t)list[i]->device;
        status->byte_size = list[i]->byte_size;
        inference__cuda_shared_memory_status_response__regions_entry__init(&told[i].entry);
        told[i].entry.key = list[i]->name;
        told[i].entry.value = status;
        message.regions[i] = &told[i].entry;
    }
    grpc_control_answer(s, NULL, &message.base);
    mem_free(message.regions);
    mem_free(told);
}

void grpc_regions_cuda_status(struct grpc_stream *s, const uint8_t *data, size_t len,
                              struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m = grpc_control_unpack(
        s, &inference__cuda_shared_memory_status_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__CudaSharedMemoryStatusRequest *in =
        (const Inference__CudaSharedMemoryStatusRequest *)m;
    grpc_regions_tell(s, REGION_CUDA, in->name, answer_cuda_regions);
    protobuf_c_message_free_unpacked(m, NULL);
}

static void finish_register(struct control_task *t)
{
    static const Inference__CudaSharedMemoryRegisterResponse m =
        INFERENCE__CUDA_SHARED_MEMORY_REGISTER_RESPONSE__INIT;
    grpc_repository_finish(t, &m.base);
}

static void finish_unregister(struct control_task *t)
{
    static const Inference__CudaSharedMemoryUnregisterResponse m =
        INFERENCE__CUDA_SHARED_MEMORY_UNREGISTER_RESPONSE__INIT;
    grpc_repository_finish(t, &m.base);
}

/* The call ends when what was ordered has been done. */
static struct control_task *grpc_regions_later(struct grpc_stream *s,
                                               void (*finish)(struct control_task *t))
{
    grpc_stream_hold(s, &s->call);
    return control_task_new(s->conn->home->worker->loop, finish, s);
}

void grpc_regions_cuda_register(struct grpc_stream *s, const uint8_t *data, size_t len,
                                struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m = grpc_control_unpack(
        s, &inference__cuda_shared_memory_register_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__CudaSharedMemoryRegisterRequest *in =
        (const Inference__CudaSharedMemoryRegisterRequest *)m;
    struct cuda_ipc_handle handle = {{0}}; /* one that is no handle is as one of no memory */
    if (in->raw_handle.len == sizeof(handle))
        memcpy(&handle, in->raw_handle.data, sizeof(handle));
    regions_order_register(grpc_regions_of(s), as_region_name(in->name), &handle, in->device_id,
                           in->byte_size, control_task_done,
                           grpc_regions_later(s, finish_register));
    protobuf_c_message_free_unpacked(m, NULL);
}

void grpc_regions_cuda_unregister(struct grpc_stream *s, const uint8_t *data, size_t len,
                                  struct buf **buf)
{
    (void)buf;
    ProtobufCMessage *m = grpc_control_unpack(
        s, &inference__cuda_shared_memory_unregister_request__descriptor, data, len);
    if (!m)
        return;
    const Inference__CudaSharedMemoryUnregisterRequest *in =
        (const Inference__CudaSharedMemoryUnregisterRequest *)m;
    regions_order_unregister(grpc_regions_of(s), as_region_name(in->name), control_task_done,
                             grpc_regions_later(s, finish_unregister));
    protobuf_c_message_free_unpacked(m, NULL);
}

static bool grpc_regions_is_named(const struct infer_pb_param *p, const char *name)
{
    return p->name.len == strlen(name) && memcmp(p->name.data, name, p->name.len) == 0;
}

static const struct infer_pb_param *part_param(const struct infer_pb_tensor *t, const char *name)
{
    for (const struct infer_pb_param *p = t->params; p; p = p->next)
        if (grpc_regions_is_named(p, name))
            return p;
    return NULL;
}

static struct err *part_needs(const struct infer_pb_tensor *t, const char *name,
                              const char *between)
{
    return err_new(STATUS_INVALID_ARG, "'%s' %s 'shared_memory_region' parameter for tensor '%.*s'",
                   name, between, (int)t->name.len, t->name.data ? t->name.data : "");
}

static struct err *part_of_type(const struct infer_pb_tensor *t, const char *name, const char *type)
{
    return err_new(STATUS_INVALID_ARG,
                   "invalid value type for '%s' parameter for tensor '%.*s', expected %s.", name,
                   (int)t->name.len, t->name.data ? t->name.data : "", type);
}

/* Numbers below zero are larger than any region. */
static struct err *part_number(const struct infer_pb_tensor *t, const char *name, bool shared,
                               bool *ret_there, uint64_t *ret)
{
    const struct infer_pb_param *p = part_param(t, name);
    *ret_there = p;
    if (!p)
        return NULL;
    if (!shared)
        return part_needs(t, name, "can not be specified without");
    if (p->choice != INFER_PB_INT64)
        return part_of_type(t, name, "int64_param");
    *ret = p->bits;
    return NULL;
}

struct err *grpc_regions_part(const struct infer_pb_tensor *t, struct regions_part *ret,
                              bool *ret_given)
{
    *ret = (struct regions_part){0};
    *ret_given = false;
    if (!t->params)
        return NULL;
    const struct infer_pb_param *region = part_param(t, "shared_memory_region");
    bool there;
    if (region && region->choice != INFER_PB_STRING)
        return part_of_type(t, "shared_memory_region", "string_param");
    struct err *e = part_number(t, "shared_memory_offset", region, &there, &ret->offset);
    if (!e)
        e = part_number(t, "shared_memory_byte_size", region, &there, &ret->byte_size);
    if (!e && region && !there)
        e = part_needs(t, "shared_memory_byte_size", "must be specified along with");
    if (e || !region)
        return e;
    ret->region = (struct regions_name){region->string.data, region->string.len};
    *ret_given = true;
    return NULL;
}
