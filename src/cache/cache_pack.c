#include "cache/cache_pack.h"

#include "infer/request.h"
#include "infer/response.h"
#include "model/config.h"

#include <string.h>

/* "NRc1": the number of the format below. Change it whenever the format changes. */
#define PACK_MARK 0x3163524eu

/* The fixed parts of a stored answer, of each output and of each parameter. Names, shapes and
 * bytes follow each part, without gaps. */
struct head {
    uint32_t mark;
    uint32_t outputs;
    uint32_t params;
};

struct output_head {
    uint64_t byte_size;
    uint32_t name_len;
    uint32_t datatype;
    uint32_t rank;
};

struct param_head {
    uint64_t value; /* for a string or bytes: the length */
    uint32_t name_len;
    uint32_t type;
};

static bool has_bytes(const struct param *p)
{
    return p->type == PARAM_STRING || p->type == PARAM_BYTES;
}

uint64_t cache_pack_size(const struct response *r)
{
    uint64_t size = sizeof(struct head);
    for (const struct tensor_output *o = r->outputs; o; o = o->next) {
        if (o->memory == BUF_MEMORY_GPU || (!o->data && !o->buf))
            return 0;
        size += sizeof(struct output_head) + strlen(o->name) + o->rank * sizeof(*o->shape) +
                o->byte_size;
    }
    for (const struct param *p = r->params.first; p; p = p->next)
        size += sizeof(struct param_head) + strlen(p->name) + (has_bytes(p) ? p->bytes.len : 0);
    return size;
}

static uint8_t *cache_pack_put(uint8_t *to, const void *data, uint64_t len)
{
    if (len)
        memcpy(to, data, len);
    return to + len;
}

static uint8_t *cache_pack_put_param(uint8_t *to, const struct param *p)
{
    struct param_head head = {.name_len = (uint32_t)strlen(p->name), .type = p->type};
    switch (p->type) {
    case PARAM_STRING:
    case PARAM_BYTES:
        head.value = p->bytes.len;
        break;
    case PARAM_INT:
        head.value = (uint64_t)p->i;
        break;
    case PARAM_BOOL:
        head.value = p->b;
        break;
    case PARAM_DOUBLE:
        memcpy(&head.value, &p->d, sizeof(head.value));
        break;
    }
    to = cache_pack_put(to, &head, sizeof(head));
    to = cache_pack_put(to, p->name, head.name_len);
    return has_bytes(p) ? cache_pack_put(to, p->bytes.data, p->bytes.len) : to;
}

void cache_pack_write(const struct response *r, uint8_t *to)
{
    struct head head = {PACK_MARK, r->output_count, r->params.count};
    to = cache_pack_put(to, &head, sizeof(head));
    for (const struct tensor_output *o = r->outputs; o; o = o->next) {
        struct output_head h;
        memset(&h, 0, sizeof(h)); /* clears the padding too, because it is stored */
        h.byte_size = o->byte_size;
        h.name_len = (uint32_t)strlen(o->name);
        h.datatype = o->datatype;
        h.rank = o->rank;
        to = cache_pack_put(to, &h, sizeof(h));
        to = cache_pack_put(to, o->name, h.name_len);
        to = cache_pack_put(to, o->shape, o->rank * sizeof(*o->shape));
        to = cache_pack_put(to, o->data, o->byte_size);
    }
    for (const struct param *p = r->params.first; p; p = p->next)
        to = cache_pack_put_param(to, p);
}

/* The bytes that are not read yet. */
struct rest {
    const uint8_t *data;
    uint64_t size;
};

/* The next len bytes; NULL if fewer are left. */
static const uint8_t *cache_pack_take(struct rest *in, uint64_t len)
{
    if (len > in->size)
        return NULL;
    const uint8_t *p = in->data;
    in->data += len;
    in->size -= len;
    return p;
}

static bool take_into(struct rest *in, void *to, uint64_t len)
{
    const uint8_t *p = cache_pack_take(in, len);
    if (p)
        memcpy(to, p, len);
    return p != NULL;
}

static struct err *spoilt(void)
{
    return err_new(STATUS_INVALID_ARG, "what the cache returned is not what was put into it");
}

static struct err *cache_pack_read_output(struct rest *in, struct response *r)
{
    struct output_head h;
    if (!take_into(in, &h, sizeof(h)))
        return spoilt();
    const uint8_t *name = cache_pack_take(in, h.name_len);
    const uint8_t *shape = cache_pack_take(in, h.rank * sizeof(int64_t));
    const uint8_t *data = cache_pack_take(in, h.byte_size);
    if (!name || !shape || !data || h.datatype == DATATYPE_INVALID || h.datatype >= DATATYPE_COUNT)
        return spoilt();
    struct tensor_output *o = response_add_shown_output(r, (const char *)name, h.name_len,
                                                        (enum datatype)h.datatype, shape, h.rank);
    struct err *e = response_output_memory(r, o, h.byte_size);
    if (!e && o->memory == BUF_MEMORY_GPU)
        e = err_new(STATUS_UNSUPPORTED, "output '%s' is wanted in device memory", o->name);
    if (!e && h.byte_size)
        memcpy(o->data, data, h.byte_size);
    return e;
}

static struct err *cache_pack_read_param(struct rest *in, struct response *r)
{
    struct param_head h;
    if (!take_into(in, &h, sizeof(h)) || h.type > PARAM_BYTES)
        return spoilt();
    bool bytes = h.type == PARAM_STRING || h.type == PARAM_BYTES;
    const char *name = (const char *)cache_pack_take(in, h.name_len);
    const char *data = bytes ? (const char *)cache_pack_take(in, h.value) : "";
    if (!name || !data)
        return spoilt();
    if (bytes) {
        struct param *p = param_add_string(&r->params, &r->arena, name, h.name_len, data, h.value);
        p->type = (enum param_type)h.type;
        return NULL;
    }
    struct param *p = param_add(&r->params, &r->arena, name, h.name_len, (enum param_type)h.type);
    if (h.type == PARAM_INT)
        p->i = (int64_t)h.value;
    else if (h.type == PARAM_BOOL)
        p->b = h.value != 0;
    else
        memcpy(&p->d, &h.value, sizeof(p->d));
    return NULL;
}

struct err *cache_pack_read(const uint8_t *data, uint64_t size, struct response *r)
{
    struct rest in = {data, size};
    struct head head;
    if (!take_into(&in, &head, sizeof(head)) || head.mark != PACK_MARK)
        return spoilt();
    struct err *e = NULL;
    for (uint32_t i = 0; !e && i < head.outputs; i++)
        e = cache_pack_read_output(&in, r);
    for (uint32_t i = 0; !e && i < head.params; i++)
        e = cache_pack_read_param(&in, r);
    if (!e && in.size)
        e = spoilt();
    return e;
}
