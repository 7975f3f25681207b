#include "codec/pb_json.h"

#include "codec/base64.h"
#include "codec/json_out.h"
#include "codec/pb_field.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pb_json_print_string(const char *s, size_t len, struct strbuf *out)
{
    static const char letters[] = "\"\\\b\f\n\r\t";
    static const char names[] = "\"\\bfnrt";
    static const char hex[] = "0123456789abcdef";
    strbuf_putc(out, '"');
    size_t start = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= ' ' && c != '"' && c != '\\' && c != 0x7F)
            continue;
        strbuf_append(out, s + start, i - start);
        start = i + 1;
        const char *letter = c ? strchr(letters, c) : NULL;
        strbuf_putc(out, '\\');
        if (letter)
            strbuf_putc(out, names[letter - letters]);
        else
            strbuf_append(out, (char[]){'u', '0', '0', hex[c >> 4], hex[c & 15]}, 5);
    }
    strbuf_append(out, s + start, len - start);
    strbuf_putc(out, '"');
}

/* print_real - print as few digits as read back the same. */
static void print_real(double value, bool is_float, struct strbuf *out)
{
    if (isnan(value) || isinf(value)) {
        strbuf_puts(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    if (value == 0 && signbit(value)) {
        strbuf_puts(out, "-0.0"); /* "-0" would be read as an integer, which has no negative zero */
        return;
    }
    /* The locale of the host program may use commas as decimal points. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(c);
    char text[40];
    int most = is_float ? 9 : 17;
    for (int digits = is_float ? 6 : 15; digits <= most; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        bool same =
            is_float ? !(strtof(text, NULL) < (float)value) && !(strtof(text, NULL) > (float)value)
                     : !(strtod(text, NULL) < value) && !(strtod(text, NULL) > value);
        if (same)
            break;
    }
    uselocale(before);
    freelocale(c);
    strbuf_puts(out, text);
}

static void print_base64(const uint8_t *data, size_t len, struct strbuf *out)
{
    strbuf_putc(out, '"');
    char *to = strbuf_reserve(out, (len + 2) / 3 * 4);
    out->len += (size_t)(base64_encode(to, data, len) - to);
    strbuf_putc(out, '"');
}

static void print_int(int64_t value, struct strbuf *out)
{
    char text[JSON_OUT_NUMBER_BYTES];
    strbuf_append(out, text, (size_t)(json_out_int(text, value) - text));
}

static void print_uint(uint64_t value, struct strbuf *out)
{
    char text[JSON_OUT_NUMBER_BYTES];
    strbuf_append(out, text, (size_t)(json_out_uint(text, value) - text));
}

/* Prints a name of the schema, which needs no escapes. */
static void print_name(const char *name, struct strbuf *out)
{
    strbuf_putc(out, '"');
    strbuf_puts(out, name);
    strbuf_putc(out, '"');
}

static void print_message(const ProtobufCMessage *msg, struct pb_json_style style,
                          struct strbuf *out);

/* print_value - print one value of a field's type; `at` points to it. */
static void print_value(const ProtobufCFieldDescriptor *field, const void *at,
                        struct pb_json_style style, struct strbuf *out)
{
    const char *quote = style.plain_int64 ? "" : "\"";
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        print_int(*(const int32_t *)at, out);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        print_uint(*(const uint32_t *)at, out);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        strbuf_puts(out, quote);
        print_int(*(const int64_t *)at, out);
        strbuf_puts(out, quote);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        strbuf_puts(out, quote);
        print_uint(*(const uint64_t *)at, out);
        strbuf_puts(out, quote);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        print_real((double)*(const float *)at, true, out);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        print_real(*(const double *)at, false, out);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        strbuf_puts(out, *(const protobuf_c_boolean *)at ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumValue *value =
            protobuf_c_enum_descriptor_get_value(field->descriptor, *(const int *)at);
        if (value)
            print_name(value->name, out);
        else
            print_int(*(const int *)at, out);
        break;
    }
    case PROTOBUF_C_TYPE_STRING: {
        const char *s = *(const char *const *)at;
        pb_json_print_string(s ? s : "", s ? strlen(s) : 0, out);
        break;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = at;
        print_base64(bytes->data, bytes->len, out);
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessage *inner = *(const ProtobufCMessage *const *)at;
        if (inner)
            print_message(inner, style, out);
        else
            strbuf_puts(out, "{}");
        break;
    }
    }
}

static void print_map_entry(const ProtobufCMessage *entry, struct pb_json_style style,
                            struct strbuf *out)
{
    const ProtobufCFieldDescriptor *key = &entry->descriptor->fields[0];
    const ProtobufCFieldDescriptor *value = &entry->descriptor->fields[1];
    bool quoted = key->type != PROTOBUF_C_TYPE_STRING;
    if (quoted)
        strbuf_putc(out, '"');
    print_value(key, pb_field_at(entry, key, 0), (struct pb_json_style){.plain_int64 = true}, out);
    strbuf_puts(out, quoted ? "\":" : ":");
    print_value(value, pb_field_at(entry, value, 0), style, out);
}

static void print_repeated(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                           struct pb_json_style style, struct strbuf *out)
{
    bool map = pb_field_is_map(msg->descriptor, field);
    size_t count = pb_field_count(msg, field);
    strbuf_putc(out, map ? '{' : '[');
    for (size_t i = 0; i < count; i++) {
        const void *at = pb_field_at(msg, field, i);
        if (i)
            strbuf_putc(out, ',');
        if (map)
            print_map_entry(*(const ProtobufCMessage *const *)at, style, out);
        else
            print_value(field, at, style, out);
    }
    strbuf_putc(out, map ? '}' : ']');
}

/* is_printed - true if it is set, or has a default that the style prints. */
static bool is_printed(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                       struct pb_json_style style)
{
    if (pb_field_is_set(msg, field))
        return true;
    if (!style.defaults || (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
        field->label == PROTOBUF_C_LABEL_OPTIONAL)
        return false;
    return field->label == PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE;
}

static void print_message(const ProtobufCMessage *msg, struct pb_json_style style,
                          struct strbuf *out)
{
    char before = '{';
    for (unsigned i = 0; i < msg->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &msg->descriptor->fields[i];
        if (!is_printed(msg, field, style))
            continue;
        strbuf_putc(out, before);
        print_name(field->name, out);
        strbuf_putc(out, ':');
        before = ',';
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            print_repeated(msg, field, style, out);
        else
            print_value(field, pb_field_at(msg, field, 0), style, out);
    }
    strbuf_puts(out, before == '{' ? "{}" : "}");
}

void pb_json_print(const ProtobufCMessage *msg, struct pb_json_style style, struct strbuf *out)
{
    print_message(msg, style, out);
}
