#include "tracing/tracing_otlp.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/pb_utf8.h"
#include "codec/pb_wire.h"
#include "tracing/tracing_record.h"

#include <string.h>

/* Numbers of fields. */
enum {
    REQUEST_RESOURCE_SPANS = 1,
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_SPANS_SCOPE_SPANS = 2,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_SPANS_SCOPE = 1,
    SCOPE_SPANS_SPANS = 2,
    SCOPE_NAME = 1,
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT_SPAN_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_EVENTS = 11,
    EVENT_TIME = 1,
    EVENT_NAME = 2,
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    ANY_STRING = 1,
    ANY_INT = 3,
};

#define KIND_SERVER  2u
#define SCOPE        "triton-server"
#define START_SUFFIX "_START"
#define END_SUFFIX   "_END"
#define NUMBER_BYTES 20u /* a tag and a varint, or a tag and eight bytes */

static void put_varint(struct strbuf *sb, uint32_t field, uint64_t value)
{
    uint8_t *at = (uint8_t *)strbuf_reserve(sb, NUMBER_BYTES);
    uint8_t *end = pb_wire_put_varint(pb_wire_put_tag(at, field, PB_WIRE_VARINT), value);
    sb->len += (size_t)(end - at);
}

static void put_fixed64(struct strbuf *sb, uint32_t field, uint64_t value)
{
    uint8_t *at = (uint8_t *)strbuf_reserve(sb, NUMBER_BYTES);
    uint8_t *end = pb_wire_put_tag(at, field, PB_WIRE_FIXED64);
    for (unsigned i = 0; i < 8; i++)
        *end++ = (uint8_t)(value >> 8 * i);
    sb->len += (size_t)(end - at);
}

static void otlp_put_bytes(struct strbuf *sb, uint32_t field, const void *data, size_t len)
{
    uint8_t *at = (uint8_t *)strbuf_reserve(sb, NUMBER_BYTES + len);
    sb->len += (size_t)(pb_wire_put_bytes(at, field, data, len) - at);
}

static void put_message(struct strbuf *sb, uint32_t field, struct strbuf *message)
{
    otlp_put_bytes(sb, field, message->data, message->len);
    strbuf_fini(message);
}

/* A collector refuses all of a request in which one text is not UTF-8. */
static void put_utf8(struct strbuf *sb, uint32_t field, const char *s, size_t len)
{
    if (pb_utf8_valid(s, len)) {
        otlp_put_bytes(sb, field, s, len);
        return;
    }
    struct strbuf ascii = STRBUF_INIT;
    for (size_t i = 0; i < len; i++)
        strbuf_putc(&ascii, (unsigned char)s[i] < 0x80 ? s[i] : '?');
    put_message(sb, field, &ascii);
}

static void put_attribute(struct strbuf *sb, uint32_t field, const char *key, size_t key_len,
                          const char *text, int64_t number)
{
    struct strbuf value = STRBUF_INIT, pair = STRBUF_INIT;
    if (text)
        put_utf8(&value, ANY_STRING, text, strlen(text));
    else
        put_varint(&value, ANY_INT, (uint64_t)number);
    put_utf8(&pair, KEY_VALUE_KEY, key, key_len);
    put_message(&pair, KEY_VALUE_VALUE, &value);
    put_message(sb, field, &pair);
}

struct otlp_span {
    struct otlp_span *next;  /* of all, in the order of their beginning */
    struct otlp_span *below; /* that was open when it began, of the same request */
    const struct tracing_node *node;
    const char *name;
    size_t name_len;
    uint8_t id[TRACING_SPAN_ID_BYTES];
    const uint8_t *parent; /* NULL = none */
    enum tracing_kind kind;
    time_ns start;
    time_ns end; /* 0 = it is open */
    struct strbuf events;
};

/* A record being turned into spans. */
struct otlp_spans {
    const struct tracing_record *record;
    tracing_otlp_random_fn *random;
    struct otlp_span root;
    struct otlp_span *last;
};

static void put_span_event(const struct otlp_spans *all, struct otlp_span *span,
                           const struct tracing_activity *a)
{
    struct strbuf event = STRBUF_INIT;
    put_fixed64(&event, EVENT_TIME, all->record->wall_offset + a->when);
    put_utf8(&event, EVENT_NAME, a->name, strlen(a->name));
    put_message(&span->events, SPAN_EVENTS, &event);
}

/* The innermost span of a request that is open; NULL = none is. */
static struct otlp_span *open_of(struct otlp_spans *all, uint64_t id)
{
    struct otlp_span *found = NULL;
    for (struct otlp_span *s = all->root.next; s; s = s->next)
        if (s->node->id == id && !s->end)
            found = s;
    return found;
}

static struct otlp_span *begin_span(struct otlp_spans *all, const struct tracing_activity *a,
                                    const char *name, size_t name_len)
{
    struct otlp_span *s = MEM_NEW(struct otlp_span);
    s->node = a->node;
    s->name = name;
    s->name_len = name_len;
    s->kind = a->kind;
    s->start = a->when;
    s->below = open_of(all, a->node->id);
    struct otlp_span *parent = s->below;
    if (a->kind == TRACING_REQUEST_START) {
        memcpy(s->id, a->node->span_id, sizeof(s->id)); /* it was told already */
        parent = a->node->parent ? open_of(all, a->node->parent) : NULL;
    } else {
        all->random(s->id, sizeof(s->id));
    }
    s->parent = parent ? parent->id : all->root.id;
    all->last->next = s;
    all->last = s;
    return s;
}

/* A span and those that began inside of it. */
static void end_span(struct otlp_span *innermost, const struct otlp_span *outermost, time_ns when)
{
    for (struct otlp_span *s = innermost; s; s = s->below) {
        s->end = when;
        if (s == outermost)
            return;
    }
}

static bool has_suffix(const char *name, const char *suffix, size_t *ret_len)
{
    size_t len = strlen(name), tail = strlen(suffix);
    if (len <= tail || strcmp(name + len - tail, suffix) != 0)
        return false;
    *ret_len = len - tail;
    return true;
}

/* The open span that an activity ends; NULL = none. What began inside of it ends with it. */
static struct otlp_span *span_to_end(struct otlp_span *innermost, const struct tracing_activity *a)
{
    size_t len = 0;
    bool named = a->kind == TRACING_NAMED && has_suffix(a->name, END_SUFFIX, &len);
    for (struct otlp_span *s = innermost; s; s = s->below) {
        if (a->kind == TRACING_REQUEST_END && s->kind == TRACING_REQUEST_START)
            return s;
        if (a->kind == TRACING_COMPUTE_END && s->kind == TRACING_COMPUTE_START)
            return s;
        if (named && s->kind == TRACING_NAMED && s->name_len == len &&
            memcmp(s->name, a->name, len) == 0)
            return s;
    }
    return NULL;
}

static void take_activity(struct otlp_spans *all, const struct tracing_activity *a)
{
    size_t len;
    if (a->kind == TRACING_MARK) {
        put_span_event(all, &all->root, a);
        return;
    }
    if (a->kind == TRACING_REQUEST_START)
        begin_span(all, a, a->node->model, strlen(a->node->model));
    else if (a->kind == TRACING_COMPUTE_START)
        begin_span(all, a, "compute", 7);
    else if (a->kind == TRACING_NAMED && has_suffix(a->name, START_SUFFIX, &len))
        begin_span(all, a, a->name, len);
    struct otlp_span *open = open_of(all, a->node->id);
    if (!open)
        return;
    put_span_event(all, open, a);
    struct otlp_span *ends = span_to_end(open, a);
    if (ends)
        end_span(open, ends, a->when);
}

static void put_node_attributes(struct strbuf *sb, const struct tracing_node *n)
{
#define KEY(text) "triton." text, sizeof("triton." text) - 1
    put_attribute(sb, SPAN_ATTRIBUTES, KEY("model_name"), n->model, 0);
    put_attribute(sb, SPAN_ATTRIBUTES, KEY("model_version"), NULL, n->version);
    put_attribute(sb, SPAN_ATTRIBUTES, KEY("trace_id"), NULL, (int64_t)n->id);
    put_attribute(sb, SPAN_ATTRIBUTES, KEY("trace_parent_id"), NULL, (int64_t)n->parent);
    if (*n->request_id)
        put_attribute(sb, SPAN_ATTRIBUTES, KEY("request_id"), n->request_id, 0);
#undef KEY
}

static void put_span(const struct otlp_spans *all, struct otlp_span *s, struct strbuf *spans)
{
    const struct tracing_record *r = all->record;
    struct strbuf span = STRBUF_INIT;
    otlp_put_bytes(&span, SPAN_TRACE_ID, r->self.trace_id, sizeof(r->self.trace_id));
    otlp_put_bytes(&span, SPAN_SPAN_ID, s->id, sizeof(s->id));
    if (r->state)
        otlp_put_bytes(&span, SPAN_TRACE_STATE, r->state, strlen(r->state));
    if (s->parent)
        otlp_put_bytes(&span, SPAN_PARENT_SPAN_ID, s->parent, TRACING_SPAN_ID_BYTES);
    put_utf8(&span, SPAN_NAME, s->name, s->name_len);
    put_varint(&span, SPAN_KIND, KIND_SERVER);
    put_fixed64(&span, SPAN_START, r->wall_offset + s->start);
    put_fixed64(&span, SPAN_END, r->wall_offset + (s->end ? s->end : r->ended));
    if (s->kind == TRACING_REQUEST_START)
        put_node_attributes(&span, s->node);
    strbuf_append(&span, s->events.data ? s->events.data : "", s->events.len);
    strbuf_fini(&s->events);
    put_message(spans, SCOPE_SPANS_SPANS, &span);
}

void tracing_otlp_spans(const struct tracing_record *r, tracing_otlp_random_fn *random,
                        struct strbuf *spans)
{
    static const uint8_t none[TRACING_SPAN_ID_BYTES];
    struct otlp_spans all = {.record = r,
                             .random = random,
                             .root = {.name = "InferRequest",
                                      .name_len = 12,
                                      .kind = TRACING_MARK,
                                      .start = r->begun,
                                      .end = r->ended}};
    all.last = &all.root;
    memcpy(all.root.id, r->self.span_id, sizeof(all.root.id));
    if (memcmp(r->parent_span_id, none, sizeof(none)) != 0)
        all.root.parent = r->parent_span_id;
    for (const struct tracing_activity *a = r->activities; a; a = a->next)
        if (a->kind != TRACING_TENSOR)
            take_activity(&all, a);
    put_span(&all, &all.root, spans);
    for (struct otlp_span *s = all.root.next, *next; s; s = next) {
        next = s->next;
        put_span(&all, s, spans);
    }
    for (struct otlp_span *s = all.root.next, *next; s; s = next) {
        next = s->next;
        mem_free(s);
    }
}

void tracing_otlp_attribute(struct strbuf *resource, const char *key, size_t key_len,
                            const char *value)
{
    put_attribute(resource, RESOURCE_ATTRIBUTES, key, key_len, value, 0);
}

void tracing_otlp_request(const struct strbuf *resource, const struct strbuf *spans,
                          struct strbuf *ret)
{
    struct strbuf scope = STRBUF_INIT, scope_spans = STRBUF_INIT, resource_spans = STRBUF_INIT;
    otlp_put_bytes(&scope, SCOPE_NAME, SCOPE, sizeof(SCOPE) - 1);
    put_message(&scope_spans, SCOPE_SPANS_SCOPE, &scope);
    strbuf_append(&scope_spans, strbuf_str(spans), spans->len);
    otlp_put_bytes(&resource_spans, RESOURCE_SPANS_RESOURCE, strbuf_str(resource), resource->len);
    put_message(&resource_spans, RESOURCE_SPANS_SCOPE_SPANS, &scope_spans);
    put_message(ret, REQUEST_RESOURCE_SPANS, &resource_spans);
}
