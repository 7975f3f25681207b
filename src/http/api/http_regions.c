#include "http/api/http_regions.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/base64.h"
#include "codec/json_out.h"
#include "codec/json_tensor.h"
#include "http/api/http_json.h"
#include "http/api/http_repository.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "nereid/cuda_driver.h"
#include "net/control_task.h"
#include "regions/region.h"
#include "regions/regions_order.h"
#include "server/server.h"
#include "server/worker.h"

#include <inttypes.h>
#include <string.h>

static struct err *not_of_type(enum json_tensor_result wanted)
{
    return err_new(STATUS_INTERNAL, "%s", json_tensor_text(wanted));
}

static struct err *http_regions_uint(yyjson_val *v, uint64_t *ret)
{
    if (!yyjson_is_uint(v))
        return not_of_type(JSON_TENSOR_NOT_UINT);
    *ret = unsafe_yyjson_get_uint(v);
    return NULL;
}

struct err *http_regions_part(yyjson_val *params, struct regions_part *ret, bool *ret_given)
{
    yyjson_val *region = http_json_get(params, "shared_memory_region");
    yyjson_val *offset = http_json_get(params, "shared_memory_offset");
    yyjson_val *size = http_json_get(params, "shared_memory_byte_size");
    *ret = (struct regions_part){0};
    *ret_given = region;
    if (region && !yyjson_is_str(region))
        return err_wrap(not_of_type(JSON_TENSOR_NOT_STRING),
                        "Unable to parse 'shared_memory_region'");
    if (region)
        ret->region =
            (struct regions_name){unsafe_yyjson_get_str(region), unsafe_yyjson_get_len(region)};
    struct err *e = offset ? http_regions_uint(offset, &ret->offset) : NULL;
    if (e)
        return err_wrap(e, "Unable to parse 'shared_memory_offset'");
    e = size ? http_regions_uint(size, &ret->byte_size) : NULL;
    return e ? err_wrap(e, "Unable to parse 'shared_memory_byte_size'") : NULL;
}

static struct regions_name region_name_of(const struct http_message *m)
{
    struct http_route_part p = m->route->region;
    return (struct regions_name){http_message_part(m, p), p.len};
}

static enum region_kind kind_of(const struct http_message *m)
{
    return m->route->cuda ? REGION_CUDA : REGION_SYSTEM;
}

static struct regions *http_regions_of(const struct http_exchange *x)
{
    return x->shard->worker->server->regions;
}

static char *put_region(char *to, const struct region *r)
{
    to = JSON_OUT_LITERAL(to, "{\"name\":");
    to = json_out_string(to, r->name, strlen(r->name));
    if (r->kind == REGION_CUDA) {
        to = JSON_OUT_LITERAL(to, ",\"device_id\":");
        to = json_out_uint(to, (uint64_t)r->device);
    } else {
        to = JSON_OUT_LITERAL(to, ",\"key\":");
        to = json_out_string(to, r->key, strlen(r->key));
        to = JSON_OUT_LITERAL(to, ",\"offset\":");
        to = json_out_uint(to, r->offset);
    }
    to = JSON_OUT_LITERAL(to, ",\"byte_size\":");
    to = json_out_uint(to, r->byte_size);
    return JSON_OUT_LITERAL(to, "}");
}

static void tell_regions(struct http_exchange *x, struct region **list, size_t count)
{
    struct strbuf sb = STRBUF_INIT;
    strbuf_putc(&sb, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            strbuf_putc(&sb, ',');
        const char *key = list[i]->key ? list[i]->key : "";
        size_t room = json_out_string_bytes(strlen(list[i]->name)) +
                      json_out_string_bytes(strlen(key)) + 4 * JSON_OUT_NUMBER_BYTES;
        char *to = strbuf_reserve(&sb, room);
        sb.len += (size_t)(put_region(to, list[i]) - to);
    }
    strbuf_putc(&sb, ']');
    size_t len = sb.len;
    http_exchange_text(x, 200, HTTP_JSON, strbuf_take(&sb), len);
}

static struct err *tell(struct http_exchange *x, const struct http_message *m)
{
    struct regions *s = http_regions_of(x);
    struct region **list = NULL;
    size_t count = 0;
    struct err *e = regions_list(s, kind_of(m), region_name_of(m), &list, &count);
    if (e)
        return e;
    tell_regions(x, list, count);
    regions_list_free(list, count);
    return NULL;
}

static struct err *lacks(const char *field)
{
    return err_new(STATUS_INVALID_ARG, "Shared memory register request has no '%s' field", field);
}

static struct err *register_system(struct regions *s, struct regions_name name, yyjson_val *root)
{
    yyjson_val *key = http_json_get(root, "key");
    yyjson_val *offset = http_json_get(root, "offset");
    yyjson_val *size = http_json_get(root, "byte_size");
    uint64_t from = 0, bytes = 0;
    struct err *e = NULL;
    if (!key)
        return lacks("key");
    if (!yyjson_is_str(key))
        return not_of_type(JSON_TENSOR_NOT_STRING);
    if (offset)
        e = http_regions_uint(offset, &from);
    if (!e)
        e = size ? http_regions_uint(size, &bytes) : lacks("byte_size");
    if (!e)
        e = http_json_whole("key", unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key));
    return e ? e : regions_register(s, name, unsafe_yyjson_get_str(key), from, bytes);
}

/* A member that must be there. */
static struct err *member(yyjson_val *object, const char *name, yyjson_val **ret)
{
    *ret = yyjson_obj_get(object, name);
    return *ret ? NULL
                : err_new(STATUS_INTERNAL, "attempt to access non-existing object member '%s'",
                          name);
}

static struct err *read_handle(yyjson_val *text, struct cuda_ipc_handle *ret)
{
    size_t len = unsafe_yyjson_get_len(text);
    size_t got = 0;
    char bytes[2 * sizeof(*ret)];
    if (base64_room(len) <= sizeof(bytes) &&
        base64_decode(unsafe_yyjson_get_str(text), len, BASE64_ONE_LINE, bytes, &got) &&
        got == sizeof(*ret)) {
        memcpy(ret, bytes, sizeof(*ret));
        return NULL;
    }
    return err_new(STATUS_INVALID_ARG,
                   "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
}

/* x is answered when what was ordered has been done. */
static struct control_task *http_regions_later(struct http_exchange *x)
{
    x->pending = true;
    return control_task_new(x->shard->worker->loop, http_repository_finish, x);
}

static struct err *register_cuda(struct http_exchange *x, struct regions_name name,
                                 yyjson_val *root)
{
    yyjson_val *handle = http_json_get(root, "raw_handle");
    yyjson_val *text, *number;
    struct cuda_ipc_handle of;
    uint64_t bytes = 0, device = 0;
    if (!handle)
        return lacks("raw_handle");
    struct err *e = member(handle, "b64", &text);
    if (!e && !yyjson_is_str(text))
        e = not_of_type(JSON_TENSOR_NOT_STRING);
    if (!e)
        e = member(root, "byte_size", &number);
    if (!e)
        e = http_regions_uint(number, &bytes);
    if (!e)
        e = member(root, "device_id", &number);
    if (!e)
        e = http_regions_uint(number, &device);
    if (!e)
        e = read_handle(text, &of);
    /* a number too large for a device becomes one below zero, which is none either */
    if (!e)
        regions_order_register(http_regions_of(x), name, &of, (int64_t)device, bytes,
                               control_task_done, http_regions_later(x));
    return e;
}

static struct err *register_region(struct http_exchange *x, struct http_message *m)
{
    struct regions *s = http_regions_of(x);
    struct regions_name name = region_name_of(m);
    struct http_json json;
    struct err *e = regions_allowed(s);
    if (!e && !name.len)
        e = err_new(STATUS_INVALID_ARG,
                    "'region name' is necessary to register %s shared memory region",
                    m->route->cuda ? "cuda" : "system");
    if (!e)
        e = http_json_parse_body(x->shard, m, &json);
    if (e)
        return e;
    yyjson_val *root = yyjson_doc_get_root(json.doc);
    e = m->route->cuda ? register_cuda(x, name, root) : register_system(s, name, root);
    http_json_end(&json);
    return e;
}

static struct err *unregister_cuda(struct http_exchange *x, const struct http_message *m)
{
    struct err *e = regions_allowed(http_regions_of(x));
    if (!e)
        regions_order_unregister(http_regions_of(x), region_name_of(m), control_task_done,
                                 http_regions_later(x));
    return e;
}

struct err *http_regions_serve(struct http_exchange *x, struct http_message *m)
{
    struct err *e;
    if (m->route->status)
        return tell(x, m);
    if (!m->route->unload)
        e = register_region(x, m);
    else if (m->route->cuda)
        e = unregister_cuda(x, m);
    else
        e = regions_unregister(http_regions_of(x), REGION_SYSTEM, region_name_of(m));
    if (!e && !x->pending)
        http_exchange_static(x, 200, HTTP_JSON, NULL, 0);
    return e;
}
