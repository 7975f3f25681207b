#include "codec/infer_pb.h"

#include "codec/pb_utf8.h"

/* Limits for the rest of one message. */
struct reading {
    struct arena *arena;
    uint32_t params;
    uint32_t parts;
};

/* Calls `each` for every field of a message; it may return an error. */
typedef enum infer_pb_result (*field_fn)(const struct pb_wire_field *f, struct reading *a,
                                         void *to);

static enum infer_pb_result infer_pb_read_fields(const void *data, size_t len, struct reading *a,
                                                 field_fn each, void *to)
{
    struct pb_wire w = pb_wire_of(data, len);
    struct pb_wire_field f;
    for (;;) {
        enum pb_wire_result found = pb_wire_next(&w, &f);
        if (found == PB_WIRE_END)
            return INFER_PB_OK;
        if (found == PB_WIRE_BAD)
            return INFER_PB_MALFORMED;
        enum infer_pb_result r = each(&f, a, to);
        if (r != INFER_PB_OK)
            return r;
    }
}

static enum infer_pb_result take_string(const struct pb_wire_field *f, struct infer_pb_slice *to)
{
    if (!pb_utf8_valid(f->data, f->len))
        return INFER_PB_NOT_UTF8;
    *to = (struct infer_pb_slice){(const char *)f->data, f->len};
    return INFER_PB_OK;
}

static struct infer_pb_part *take_part(const struct pb_wire_field *f, struct reading *a)
{
    struct infer_pb_part *part = arena_alloc(a->arena, sizeof(*part));
    *part = (struct infer_pb_part){NULL, {(const char *)f->data, f->len}};
    return part;
}

/* A field of InferParameter. If several members are given, the last one counts. */
static enum infer_pb_result param_value_field(const struct pb_wire_field *f, struct reading *a,
                                              void *to)
{
    (void)a;
    struct infer_pb_param *p = to;
    if (f->number == INFER_PB_STRING && f->type == PB_WIRE_BYTES) {
        p->choice = INFER_PB_STRING;
        return take_string(f, &p->string);
    }
    bool number =
        f->number == INFER_PB_BOOL || f->number == INFER_PB_INT64 || f->number == INFER_PB_UINT64;
    if ((number && f->type == PB_WIRE_VARINT) ||
        (f->number == INFER_PB_DOUBLE && f->type == PB_WIRE_FIXED64)) {
        p->choice = (enum infer_pb_choice)f->number;
        p->bits = f->number == INFER_PB_BOOL ? f->value != 0 : f->value;
    }
    return INFER_PB_OK;
}

/* Reads a field of a map entry. */
static enum infer_pb_result param_field(const struct pb_wire_field *f, struct reading *a, void *to)
{
    struct infer_pb_param *p = to;
    if (f->type != PB_WIRE_BYTES)
        return INFER_PB_OK;
    if (f->number == 1)
        return take_string(f, &p->name);
    if (f->number == 2)
        return infer_pb_read_fields(f->data, f->len, a, param_value_field, p);
    return INFER_PB_OK;
}

static enum infer_pb_result take_param(const struct pb_wire_field *f, struct reading *a,
                                       struct infer_pb_param **list, uint32_t *count)
{
    if (a->params-- == 0 || *count == INFER_PB_MAX_MAP)
        return INFER_PB_TOO_MANY;
    struct infer_pb_param p = {0};
    enum infer_pb_result r = infer_pb_read_fields(f->data, f->len, a, param_field, &p);
    if (r != INFER_PB_OK)
        return r;
    while (*list) {
        struct infer_pb_param *old = *list;
        if (old->name.len == p.name.len &&
            (p.name.len == 0 || memcmp(old->name.data, p.name.data, p.name.len) == 0)) {
            p.next = old->next;
            *old = p;
            return INFER_PB_OK;
        }
        list = &old->next;
    }
    ++*count;
    *list = arena_alloc(a->arena, sizeof(p));
    **list = p;
    return INFER_PB_OK;
}

/* The wire type of an element of each kind of contents. */
static const enum pb_wire_type content_wire[INFER_PB_CONTENTS] = {
    [INFER_PB_BOOLS] = PB_WIRE_VARINT,   [INFER_PB_INTS] = PB_WIRE_VARINT,
    [INFER_PB_INT64S] = PB_WIRE_VARINT,  [INFER_PB_UINTS] = PB_WIRE_VARINT,
    [INFER_PB_UINT64S] = PB_WIRE_VARINT, [INFER_PB_FP32S] = PB_WIRE_FIXED32,
    [INFER_PB_FP64S] = PB_WIRE_FIXED64,  [INFER_PB_STRINGS] = PB_WIRE_BYTES,
};

/* Counts the elements of a packed run. Returns false if it is malformed. */
static bool count_packed(const struct pb_wire_field *f, enum pb_wire_type type, uint64_t *ret)
{
    if (type == PB_WIRE_FIXED32 || type == PB_WIRE_FIXED64) {
        size_t size = type == PB_WIRE_FIXED32 ? 4 : 8;
        *ret = f->len / size;
        return f->len % size == 0;
    }
    struct pb_wire w = pb_wire_of(f->data, f->len);
    uint64_t ignored;
    for (*ret = 0; w.at < w.end; ++*ret)
        if (!pb_wire_varint(&w, &ignored))
            return false;
    return true;
}

static enum infer_pb_result content_field(const struct pb_wire_field *f, struct reading *a,
                                          void *to)
{
    (void)a;
    struct infer_pb_contents *c = to;
    if (f->number == 0 || f->number >= INFER_PB_CONTENTS)
        return INFER_PB_OK;
    enum pb_wire_type type = content_wire[f->number];
    uint64_t more = 0;
    if (f->type == type) {
        more = 1;
        if (type == PB_WIRE_BYTES)
            c->string_bytes += f->len;
    } else if (f->type == PB_WIRE_BYTES && !count_packed(f, type, &more)) {
        return INFER_PB_MALFORMED;
    }
    c->count[f->number] += more;
    return INFER_PB_OK;
}

static enum infer_pb_result take_contents(const struct pb_wire_field *f, struct reading *a,
                                          struct infer_pb_tensor *t)
{
    if (a->parts-- == 0)
        return INFER_PB_TOO_MANY;
    if (!t->contents) {
        t->contents = arena_zalloc(a->arena, sizeof(*t->contents));
        t->contents->last = &t->contents->parts;
    }
    struct infer_pb_part *part = take_part(f, a);
    *t->contents->last = part;
    t->contents->last = &part->next;
    return infer_pb_read_fields(f->data, f->len, a, content_field, t->contents);
}

static enum infer_pb_result take_dim(struct infer_pb_tensor *t, struct reading *a, uint64_t dim)
{
    if (t->rank == INFER_PB_MAX_RANK)
        return INFER_PB_TOO_MANY;
    if (t->rank == t->rank_cap) {
        uint32_t cap = t->rank_cap ? t->rank_cap * 2 : 4;
        int64_t *shape = arena_alloc(a->arena, cap * sizeof(*shape));
        if (t->rank)
            memcpy(shape, t->shape, t->rank * sizeof(*shape));
        t->shape = shape;
        t->rank_cap = cap;
    }
    t->shape[t->rank++] = (int64_t)dim;
    return INFER_PB_OK;
}

static enum infer_pb_result take_dims(const struct pb_wire_field *f, struct reading *a,
                                      struct infer_pb_tensor *t)
{
    if (f->type == PB_WIRE_VARINT)
        return take_dim(t, a, f->value);
    struct pb_wire w = pb_wire_of(f->data, f->len);
    while (w.at < w.end) {
        uint64_t dim;
        if (!pb_wire_varint(&w, &dim))
            return INFER_PB_MALFORMED;
        enum infer_pb_result r = take_dim(t, a, dim);
        if (r != INFER_PB_OK)
            return r;
    }
    return INFER_PB_OK;
}

static enum infer_pb_result input_field(const struct pb_wire_field *f, struct reading *a, void *to)
{
    struct infer_pb_tensor *t = to;
    if (f->number == 3 && (f->type == PB_WIRE_BYTES || f->type == PB_WIRE_VARINT))
        return take_dims(f, a, t);
    if (f->type != PB_WIRE_BYTES)
        return INFER_PB_OK;
    switch (f->number) {
    case 1:
        return take_string(f, &t->name);
    case 2:
        return take_string(f, &t->datatype);
    case 4:
        return take_param(f, a, &t->params, &t->param_count);
    case 5:
        return take_contents(f, a, t);
    default:
        return INFER_PB_OK;
    }
}

static enum infer_pb_result output_field(const struct pb_wire_field *f, struct reading *a, void *to)
{
    struct infer_pb_tensor *t = to;
    if (f->type != PB_WIRE_BYTES)
        return INFER_PB_OK;
    if (f->number == 1)
        return take_string(f, &t->name);
    if (f->number == 2)
        return take_param(f, a, &t->params, &t->param_count);
    return INFER_PB_OK;
}

/* The request that is being read, and the ends of its lists. */
struct reader {
    struct infer_pb_request *request;
    struct infer_pb_tensor **last_input;
    struct infer_pb_tensor **last_output;
    struct infer_pb_part **last_raw;
};

static enum infer_pb_result take_tensor(const struct pb_wire_field *f, struct reading *a,
                                        field_fn each, struct infer_pb_tensor ***last,
                                        uint32_t *count)
{
    if (++*count > INFER_PB_MAX_TENSORS)
        return INFER_PB_TOO_MANY;
    struct infer_pb_tensor *t = arena_zalloc(a->arena, sizeof(*t));
    **last = t;
    *last = &t->next;
    return infer_pb_read_fields(f->data, f->len, a, each, t);
}

static enum infer_pb_result request_field(const struct pb_wire_field *f, struct reading *a,
                                          void *to)
{
    struct reader *r = to;
    struct infer_pb_request *q = r->request;
    if (f->type != PB_WIRE_BYTES)
        return INFER_PB_OK;
    switch (f->number) {
    case 1:
        return take_string(f, &q->model_name);
    case 2:
        return take_string(f, &q->model_version);
    case 3:
        return take_string(f, &q->id);
    case 4:
        return take_param(f, a, &q->params, &q->param_count);
    case 5:
        return take_tensor(f, a, input_field, &r->last_input, &q->input_count);
    case 6:
        return take_tensor(f, a, output_field, &r->last_output, &q->output_count);
    case 7:
        if (++q->raw_count > INFER_PB_MAX_TENSORS)
            return INFER_PB_TOO_MANY;
        *r->last_raw = take_part(f, a);
        r->last_raw = &(*r->last_raw)->next;
        return INFER_PB_OK;
    default:
        return INFER_PB_OK;
    }
}

enum infer_pb_result infer_pb_read(const void *data, size_t len, struct arena *arena,
                                   struct infer_pb_request *ret)
{
    struct reading a = {arena, INFER_PB_MAX_PARAMS, INFER_PB_MAX_TENSORS};
    *ret = (struct infer_pb_request){0};
    struct reader r = {ret, &ret->inputs, &ret->outputs, &ret->raws};
    return infer_pb_read_fields(data, len, &a, request_field, &r);
}

uint64_t infer_pb_content_bytes(const struct infer_pb_contents *c, enum infer_pb_content kind,
                                uint32_t element_bytes)
{
    return kind == INFER_PB_STRINGS ? 4 * c->count[kind] + c->string_bytes
                                    : c->count[kind] * element_bytes;
}

/* The sizes are constants, so that each case is one store. */
static inline uint8_t *put_element(uint8_t *to, uint64_t value, uint32_t bytes)
{
    switch (bytes) {
    case 1:
        *to = (uint8_t)value;
        break;
    case 2:
        memcpy(to, &value, 2);
        break;
    case 4:
        memcpy(to, &value, 4);
        break;
    default:
        memcpy(to, &value, 8);
        break;
    }
    return to + bytes;
}

/* Writes the elements of a field and returns the next position. They were checked when they were
 * counted. */
static uint8_t *write_field(const struct pb_wire_field *f, enum pb_wire_type type, bool truth,
                            uint32_t element_bytes, uint8_t *to)
{
    if (type == PB_WIRE_BYTES) {
        uint32_t len = (uint32_t)f->len;
        memcpy(to, &len, sizeof(len));
        if (len)
            memcpy(to + sizeof(len), f->data, len);
        return to + sizeof(len) + len;
    }
    if (f->type == type)
        return put_element(to, truth ? f->value != 0 : f->value, element_bytes);
    if (f->type != PB_WIRE_BYTES)
        return to;
    if (type != PB_WIRE_VARINT) {
        if (f->len)
            memcpy(to, f->data, f->len);
        return to + f->len;
    }
    struct pb_wire w = pb_wire_of(f->data, f->len);
    uint64_t value;
    while (w.at < w.end && pb_wire_varint(&w, &value))
        to = put_element(to, truth ? value != 0 : value, element_bytes);
    return to;
}

void infer_pb_content_write(const struct infer_pb_contents *c, enum infer_pb_content kind,
                            uint32_t element_bytes, void *to)
{
    uint8_t *at = to;
    for (const struct infer_pb_part *p = c->parts; p; p = p->next) {
        struct pb_wire w = pb_wire_of(p->bytes.data, p->bytes.len);
        struct pb_wire_field f;
        while (pb_wire_next(&w, &f) == PB_WIRE_FIELD)
            if (f.number == kind &&
                (content_wire[kind] != PB_WIRE_BYTES || f.type == PB_WIRE_BYTES))
                at = write_field(&f, content_wire[kind], kind == INFER_PB_BOOLS, element_bytes, at);
    }
}

size_t infer_pb_raw_offset(const void *data, size_t len)
{
    struct pb_wire w = pb_wire_of(data, len);
    while (w.at < w.end) {
        struct pb_wire before = w;
        struct pb_wire_field f;
        if (pb_wire_next(&w, &f) == PB_WIRE_FIELD)
            continue;
        uint64_t tag;
        uint64_t bytes;
        if (!pb_wire_varint(&before, &tag) || tag != (7 << 3 | PB_WIRE_BYTES) ||
            !pb_wire_varint(&before, &bytes))
            return 0;
        return bytes > (uint64_t)(before.end - before.at)
                   ? (size_t)(before.at - (const uint8_t *)data)
                   : 0;
    }
    return 0;
}
