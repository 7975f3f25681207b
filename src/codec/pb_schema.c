#include "codec/pb_schema.h"

#include "base/check.h"
#include "codec/pb_field.h"

#include <stdbool.h>
#include <string.h>

#define MOST 128u /* messages in a schema */

struct schema {
    const ProtobufCMessageDescriptor *messages[MOST];
    size_t count;
    const char *prefix;
    struct strbuf *out;
};

static const char *short_name(const ProtobufCMessageDescriptor *d)
{
    size_t package = strlen(d->package_name);
    return d->name + (package ? package + 1 : 0);
}

/* The message that values of the field are, or hold; NULL = none. */
static const ProtobufCMessageDescriptor *message_of(const ProtobufCMessageDescriptor *d,
                                                    const ProtobufCFieldDescriptor *f)
{
    if (f->type != PROTOBUF_C_TYPE_MESSAGE)
        return NULL;
    const ProtobufCMessageDescriptor *inner = f->descriptor;
    return pb_field_is_map(d, f) ? message_of(inner, &inner->fields[1]) : inner;
}

/* Adds a message and all that it holds, each once. */
static void pb_schema_collect(struct schema *s, const ProtobufCMessageDescriptor *d)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->messages[i] == d)
            return;
    CHECK(s->count < MOST);
    s->messages[s->count++] = d;
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCMessageDescriptor *inner = message_of(d, &d->fields[i]);
        if (inner)
            pb_schema_collect(s, inner);
    }
}

static void put_enum(struct strbuf *out, const ProtobufCEnumDescriptor *d)
{
    strbuf_puts(out, "{\"type\":\"string\",\"enum\":[");
    for (unsigned i = 0; i < d->n_values; i++)
        strbuf_printf(out, "%s\"%s\"", i ? "," : "", d->values[i].name);
    strbuf_puts(out, "]}");
}

/* One value of a field. */
static void pb_schema_put_value(const struct schema *s, const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        strbuf_puts(s->out, "{\"type\":\"integer\"}");
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        strbuf_puts(s->out, "{\"type\":\"integer\",\"minimum\":0}");
        break;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE: /* NaN and infinities are strings */
        strbuf_puts(s->out, "{\"type\":[\"number\",\"string\"]}");
        break;
    case PROTOBUF_C_TYPE_BOOL:
        strbuf_puts(s->out, "{\"type\":\"boolean\"}");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        put_enum(s->out, f->descriptor);
        break;
    case PROTOBUF_C_TYPE_STRING:
        strbuf_puts(s->out, "{\"type\":\"string\"}");
        break;
    case PROTOBUF_C_TYPE_BYTES:
        strbuf_puts(s->out, "{\"type\":\"string\",\"contentEncoding\":\"base64\"}");
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        strbuf_printf(s->out, "{\"$ref\":\"%s%s\"}", s->prefix, short_name(f->descriptor));
        break;
    }
}

static void pb_schema_put_field(const struct schema *s, const ProtobufCMessageDescriptor *d,
                                const ProtobufCFieldDescriptor *f)
{
    if (pb_field_is_map(d, f)) {
        const ProtobufCMessageDescriptor *entry = f->descriptor;
        strbuf_puts(s->out, "{\"type\":\"object\",\"additionalProperties\":");
        pb_schema_put_value(s, &entry->fields[1]);
        strbuf_putc(s->out, '}');
    } else if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        strbuf_puts(s->out, "{\"type\":\"array\",\"items\":");
        pb_schema_put_value(s, f);
        strbuf_putc(s->out, '}');
    } else {
        pb_schema_put_value(s, f);
    }
}

void pb_schema_put(const ProtobufCMessageDescriptor *const *roots, size_t count, const char *prefix,
                   struct strbuf *out)
{
    struct schema s = {.prefix = prefix, .out = out};
    for (size_t i = 0; i < count; i++)
        pb_schema_collect(&s, roots[i]);
    for (size_t i = 0; i < s.count; i++) {
        const ProtobufCMessageDescriptor *d = s.messages[i];
        strbuf_printf(out, "%s\"%s\":{\"type\":\"object\",\"properties\":{", i ? "," : "",
                      short_name(d));
        for (unsigned f = 0; f < d->n_fields; f++) {
            strbuf_printf(out, "%s\"%s\":", f ? "," : "", d->fields[f].name);
            pb_schema_put_field(&s, d, &d->fields[f]);
        }
        strbuf_puts(out, "}}");
    }
}
