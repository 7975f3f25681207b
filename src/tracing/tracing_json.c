#include "tracing/tracing_json.h"

#include "base/strbuf.h"
#include "codec/pb_utf8.h"
#include "model/datatype.h"
#include "tracing/tracing_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is not UTF-8 is put as if each byte were a character: the file stays JSON. */
static void put_chars(struct strbuf *sb, const char *s, size_t len)
{
    bool utf8 = pb_utf8_valid(s, len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            strbuf_printf(sb, "\\%c", c);
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
            strbuf_printf(sb, "\\u%04x", c);
        else
            strbuf_putc(sb, (char)c);
    }
}

static void put_json_member(struct strbuf *sb, const char *key, const char *text)
{
    strbuf_printf(sb, ",\"%s\":\"", key);
    put_chars(sb, text, strlen(text));
    strbuf_putc(sb, '"');
}

/* Few digits where they say it all. */
static void put_real(struct strbuf *sb, double d, bool is_float)
{
    char text[32];
    snprintf(text, sizeof(text), "%.6g", d);
    double back = strtod(text, NULL);
    if (is_float ? (float)back != (float)d : back != d)
        snprintf(text, sizeof(text), is_float ? "%.9g" : "%.17g", d);
    strbuf_puts(sb, text);
}

/* Of half floats the reference tells nothing. */
static size_t width_of(enum datatype type)
{
    return type == DATATYPE_FP16 || type == DATATYPE_BF16 ? 0 : datatype_bytes(type);
}

static bool is_signed(enum datatype type)
{
    return type == DATATYPE_INT8 || type == DATATYPE_INT16 || type == DATATYPE_INT32 ||
           type == DATATYPE_INT64;
}

static void put_number(struct strbuf *sb, enum datatype type, const char *at, size_t width)
{
    uint64_t n = 0;
    memcpy(&n, at, width);
    if (type == DATATYPE_FP32) {
        float f;
        memcpy(&f, at, sizeof(f));
        put_real(sb, (double)f, true);
    } else if (type == DATATYPE_FP64) {
        double d;
        memcpy(&d, at, sizeof(d));
        put_real(sb, d, false);
    } else if (type == DATATYPE_BOOL) {
        strbuf_putc(sb, n ? '1' : '0');
    } else if (is_signed(type)) {
        unsigned unused = (unsigned)(64 - 8 * width);
        strbuf_printf(sb, "%" PRId64, (int64_t)(n << unused) >> unused);
    } else {
        strbuf_printf(sb, "%" PRIu64, n);
    }
}

/* Up to the first that is not whole. */
static void tracing_json_put_strings(struct strbuf *sb, const char *at, size_t left)
{
    for (bool first = true; left >= sizeof(uint32_t); first = false) {
        uint32_t len;
        memcpy(&len, at, sizeof(len));
        at += sizeof(len);
        left -= sizeof(len);
        if (len > left)
            return;
        strbuf_puts(sb, first ? "\\\"" : ",\\\"");
        put_chars(sb, at, len);
        strbuf_puts(sb, "\\\"");
        at += len;
        left -= len;
    }
}

static void tracing_json_put_tensor(struct strbuf *sb, const struct tracing_tensor *t)
{
    strbuf_puts(sb, ",\"tensor\":{\"name\":\"");
    put_chars(sb, t->name, strlen(t->name));
    strbuf_puts(sb, "\",\"data\":\"");
    size_t width = width_of(t->datatype);
    const char *data = t->data;
    for (size_t i = 0; width && i < t->bytes / width; i++) {
        if (i)
            strbuf_putc(sb, ',');
        put_number(sb, t->datatype, data + i * width, width);
    }
    if (t->datatype == DATATYPE_BYTES && data)
        tracing_json_put_strings(sb, data, t->bytes);
    strbuf_puts(sb, "\",\"shape\":\"");
    for (uint64_t i = 0; i < t->rank; i++)
        strbuf_printf(sb, i ? ",%" PRId64 : "%" PRId64, t->shape[i]);
    strbuf_puts(sb, "\"");
    put_json_member(sb, "dtype", datatype_name(t->datatype));
    strbuf_putc(sb, '}');
}

static void put_node(struct strbuf *sb, const struct tracing_node *n)
{
    strbuf_printf(sb, "{\"id\":%" PRIu64, n->id);
    put_json_member(sb, "model_name", n->model);
    strbuf_printf(sb, ",\"model_version\":%" PRId64, n->version);
    if (*n->request_id)
        put_json_member(sb, "request_id", n->request_id);
    if (n->parent)
        strbuf_printf(sb, ",\"parent_id\":%" PRIu64, n->parent);
    strbuf_putc(sb, '}');
}

static void tracing_json_put_activity(struct strbuf *sb, uint64_t id,
                                      const struct tracing_activity *a)
{
    strbuf_printf(sb, "{\"id\":%" PRIu64, id);
    if (a->tensor) {
        put_json_member(sb, "activity", a->name);
        tracing_json_put_tensor(sb, a->tensor);
        strbuf_putc(sb, '}');
        return;
    }
    strbuf_puts(sb, ",\"timestamps\":[{\"name\":\"");
    put_chars(sb, a->name, strlen(a->name));
    strbuf_printf(sb, "\",\"ns\":%" PRIu64 "}]}", a->when);
}

/* One request of those in it, with what the front end saw if it is the first. */
static void put_traced(const struct tracing_record *r, const struct tracing_node *n,
                       struct strbuf *sb)
{
    bool named = false;
    for (const struct tracing_activity *a = r->activities; a; a = a->next) {
        if (a->node ? a->node != n : n != r->nodes)
            continue;
        if (sb->len)
            strbuf_putc(sb, ',');
        if (a->node && !named) {
            put_node(sb, n);
            strbuf_putc(sb, ',');
            named = true;
        }
        tracing_json_put_activity(sb, n->id, a);
    }
}

void tracing_json_put(const struct tracing_record *r, struct strbuf *sb)
{
    for (const struct tracing_node *n = r->nodes; n; n = n->next)
        put_traced(r, n, sb);
}
