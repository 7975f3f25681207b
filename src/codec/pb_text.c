#include "codec/pb_text.h"

#include "codec/pb_field.h"
#include "codec/pb_name.h"
#include "codec/pb_token.h"
#include "codec/pb_utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* The most bytes of the text that a message quotes. */
#define QUOTE_MAX 40

/* The position of the reader: one frame per nested field, innermost first. */
struct frame {
    const struct frame *outer;
    const ProtobufCFieldDescriptor *field;
    size_t index; /* of a repeated field */
};

struct reader {
    struct pb_lexer lx;
    const char *file;
    struct pb_budget budget;
    struct strbuf scratch; /* the string that is being read */
    unsigned depth;
};

static void pb_text_print_path(struct strbuf *sb, const struct frame *at)
{
    if (!at)
        return;
    pb_text_print_path(sb, at->outer);
    strbuf_printf(sb, "%s%s", sb->len ? "." : "", at->field->name);
    if (at->field->label == PROTOBUF_C_LABEL_REPEATED)
        strbuf_printf(sb, "[%zu]", at->index);
}

__attribute__((format(printf, 4, 5), cold)) static struct err *fail_at(const struct reader *r,
                                                                       const struct pb_token *t,
                                                                       const struct frame *at,
                                                                       const char *fmt, ...)
{
    struct strbuf path = STRBUF_INIT;
    pb_text_print_path(&path, at);
    va_list args;
    va_start(args, fmt);
    struct err *e = err_vnew(STATUS_INVALID_ARG, fmt, args);
    va_end(args);
    if (path.len)
        e = err_wrap(e, "%s", strbuf_str(&path));
    strbuf_fini(&path);
    return err_wrap(e, "%s:%" PRIu32 ":%" PRIu32, r->file, t->line, t->column);
}

/* pb_text_expected - the error for text that does not match the grammar or the field's type. */
__attribute__((cold)) static struct err *pb_text_expected(const struct reader *r,
                                                          const struct frame *at, const char *what)
{
    const struct pb_token *t = &r->lx.token;
    if (t->kind == PB_TOKEN_END)
        return fail_at(r, t, at, "expected %s, found the end of the text", what);
    if (t->kind == PB_TOKEN_BAD)
        return fail_at(r, t, at, "expected %s, found %s", what, t->problem);
    int n = (int)(t->len > QUOTE_MAX ? QUOTE_MAX : t->len);
    const char *more = t->len > QUOTE_MAX ? "..." : "";
    if (t->kind == PB_TOKEN_STRING)
        return fail_at(r, t, at, "expected %s, found the string %.*s%s", what, n, t->start, more);
    return fail_at(r, t, at, "expected %s, found '%.*s%s'", what, n, t->start, more);
}

__attribute__((cold)) static struct err *pb_text_no_memory(const struct reader *r,
                                                           const struct frame *at)
{
    return err_recode(fail_at(r, &r->lx.token, at, "the message takes more memory than it may"),
                      STATUS_UNAVAILABLE);
}

/* accept - skip a symbol if it is the current token. */
static bool accept(struct reader *r, const char *symbol)
{
    if (r->lx.token.kind != PB_TOKEN_SYMBOL || !pb_token_is(&r->lx.token, symbol))
        return false;
    pb_token_next(&r->lx);
    return true;
}

static bool is_float_type(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_FLOAT || type == PROTOBUF_C_TYPE_DOUBLE;
}

static const char *type_words(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_BOOL   ? "true or false"
           : type == PROTOBUF_C_TYPE_ENUM ? "the name or the number of a value"
                                          : pb_field_integer_words(type);
}

static struct err *pb_text_read_integer(struct reader *r, const struct frame *at, void *place)
{
    ProtobufCType type = at->field->type;
    bool is_unsigned = type == PROTOBUF_C_TYPE_UINT32 || type == PROTOBUF_C_TYPE_FIXED32 ||
                       type == PROTOBUF_C_TYPE_UINT64 || type == PROTOBUF_C_TYPE_FIXED64 ||
                       type == PROTOBUF_C_TYPE_BOOL;
    struct pb_token first = r->lx.token;
    bool negative = !is_unsigned && accept(r, "-");
    const struct pb_token *t = &r->lx.token;
    uint64_t magnitude;
    if (t->kind != PB_TOKEN_INTEGER)
        return pb_text_expected(r, at, type_words(type));
    if (!pb_token_integer(t, &magnitude) || !pb_field_put_integer(place, type, negative, magnitude))
        return fail_at(r, &first, at, "expected %s, found %s%.*s", type_words(type),
                       negative ? "-" : "", (int)(t->len > QUOTE_MAX ? QUOTE_MAX : t->len),
                       t->start);
    pb_token_next(&r->lx);
    return NULL;
}

static bool name_is(const struct pb_token *t, const char *lower)
{
    return t->kind == PB_TOKEN_NAME && strlen(lower) == t->len &&
           strncasecmp(t->start, lower, t->len) == 0;
}

static struct err *read_float(struct reader *r, const struct frame *at, void *place)
{
    bool negative = accept(r, "-");
    const struct pb_token *t = &r->lx.token;
    bool decimal = t->kind == PB_TOKEN_INTEGER && (t->len == 1 || t->start[0] != '0');
    double value;
    if (t->kind == PB_TOKEN_FLOAT || decimal)
        value = pb_token_double(t);
    else if (name_is(t, "inf") || name_is(t, "infinity"))
        value = HUGE_VAL;
    else if (name_is(t, "nan"))
        value = (double)NAN;
    else
        return pb_text_expected(r, at, "a decimal number, inf or nan");
    pb_field_put_double(place, at->field->type, negative ? -value : value);
    pb_token_next(&r->lx);
    return NULL;
}

static struct err *pb_text_read_bool(struct reader *r, const struct frame *at,
                                     protobuf_c_boolean *place)
{
    const struct pb_token *t = &r->lx.token;
    if (t->kind == PB_TOKEN_INTEGER)
        return pb_text_read_integer(r, at, place);
    if (pb_token_is(t, "true") || pb_token_is(t, "True") || pb_token_is(t, "t"))
        *place = 1;
    else if (pb_token_is(t, "false") || pb_token_is(t, "False") || pb_token_is(t, "f"))
        *place = 0;
    else
        return pb_text_expected(r, at, type_words(PROTOBUF_C_TYPE_BOOL));
    pb_token_next(&r->lx);
    return NULL;
}

static struct err *pb_text_read_enum(struct reader *r, const struct frame *at, int *place)
{
    const struct pb_token *t = &r->lx.token;
    const ProtobufCEnumDescriptor *type = at->field->descriptor;
    if (t->kind != PB_TOKEN_NAME)
        return pb_text_read_integer(r, at, place);
    const ProtobufCEnumValue *value = pb_name_value(type, t->start, t->len);
    if (!value) {
        const char *near = pb_name_nearest_value(type, t->start, t->len);
        return fail_at(r, t, at, "expected a value of the enum %s, found '%.*s'%s%s%s",
                       type->short_name, (int)(t->len > QUOTE_MAX ? QUOTE_MAX : t->len), t->start,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    *place = value->value;
    pb_token_next(&r->lx);
    return NULL;
}

static struct err *pb_text_read_bytes(struct reader *r, const struct frame *at, void *place)
{
    struct pb_token first = r->lx.token;
    if (first.kind != PB_TOKEN_STRING)
        return pb_text_expected(r, at, "a quoted string");
    r->scratch.len = 0;
    for (; r->lx.token.kind == PB_TOKEN_STRING; pb_token_next(&r->lx))
        pb_token_unquote(&r->lx.token, &r->scratch);
    const char *data = strbuf_str(&r->scratch);
    size_t len = r->scratch.len;
    if (at->field->type == PROTOBUF_C_TYPE_STRING) {
        if (memchr(data, 0, len))
            return fail_at(r, &first, at, "expected a string without zero bytes");
        if (!pb_utf8_valid(data, len))
            return fail_at(r, &first, at, "expected a string in UTF-8");
    }
    return pb_field_put_bytes(place, at->field, data, len, &r->budget) ? NULL
                                                                       : pb_text_no_memory(r, at);
}

static struct err *pb_text_read_fields(struct reader *r, const struct frame *at,
                                       ProtobufCMessage *msg, const char *close);

static struct err *pb_text_read_message(struct reader *r, const struct frame *at,
                                        ProtobufCMessage **place)
{
    const char *close = "}";
    struct pb_token open = r->lx.token;
    if (accept(r, "<"))
        close = ">";
    else if (!accept(r, "{"))
        return pb_text_expected(r, at, "'{'");
    if (r->depth == PB_TEXT_MAX_DEPTH)
        return fail_at(r, &open, at, "messages are nested deeper than %u", PB_TEXT_MAX_DEPTH);
    *place = pb_field_new_message(at->field->descriptor, &r->budget);
    if (!*place)
        return pb_text_no_memory(r, at);
    r->depth++;
    struct err *e = pb_text_read_fields(r, at, *place, close);
    r->depth--;
    return e;
}

static struct err *pb_text_read_value(struct reader *r, struct frame *at, ProtobufCMessage *msg)
{
    const ProtobufCFieldDescriptor *field = at->field;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        at->index = pb_field_count(msg, field);
    void *place = pb_field_add(msg, field, &r->budget);
    if (!place)
        return pb_text_no_memory(r, at);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return pb_text_read_message(r, at, place);
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES)
        return pb_text_read_bytes(r, at, place);
    if (field->type == PROTOBUF_C_TYPE_ENUM)
        return pb_text_read_enum(r, at, place);
    if (field->type == PROTOBUF_C_TYPE_BOOL)
        return pb_text_read_bool(r, at, place);
    return is_float_type(field->type) ? read_float(r, at, place)
                                      : pb_text_read_integer(r, at, place);
}

/* pb_text_read_list - read "[ value, value ]"; the opening bracket was read. */
static struct err *pb_text_read_list(struct reader *r, struct frame *at, ProtobufCMessage *msg)
{
    if (accept(r, "]"))
        return NULL;
    for (;;) {
        struct err *e = pb_text_read_value(r, at, msg);
        if (e)
            return e;
        if (accept(r, "]"))
            return NULL;
        if (!accept(r, ","))
            return pb_text_expected(r, at, "',' or ']'");
    }
}

__attribute__((cold)) static struct err *unknown_field(const struct reader *r,
                                                       const struct frame *outer,
                                                       const ProtobufCMessageDescriptor *type)
{
    const struct pb_token *t = &r->lx.token;
    const char *near = pb_name_nearest_field(type, t->start, t->len);
    return fail_at(r, t, outer, "expected a field of %s, found '%.*s'%s%s%s", type->short_name,
                   (int)(t->len > QUOTE_MAX ? QUOTE_MAX : t->len), t->start,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static struct err *read_field(struct reader *r, const struct frame *outer, ProtobufCMessage *msg)
{
    struct pb_token name = r->lx.token;
    if (name.kind != PB_TOKEN_NAME)
        return pb_text_expected(r, outer,
                                outer ? "a field name or the end of the message" : "a field name");
    struct frame at = {.outer = outer,
                       .field = pb_name_field(msg->descriptor, name.start, name.len)};
    if (!at.field)
        return unknown_field(r, outer, msg->descriptor);
    const ProtobufCFieldDescriptor *rival = pb_field_rival(msg, at.field);
    bool repeated = at.field->label == PROTOBUF_C_LABEL_REPEATED;
    if (!repeated && pb_field_is_set(msg, at.field))
        return fail_at(r, &name, outer, "expected '%s' once, found it again", at.field->name);
    if (rival)
        return fail_at(r, &name, outer, "expected only one of '%s' and '%s', found both",
                       rival->name, at.field->name);
    pb_token_next(&r->lx);
    if (!accept(r, ":") && at.field->type != PROTOBUF_C_TYPE_MESSAGE)
        return pb_text_expected(r, &at, "':'");
    struct err *e = repeated && accept(r, "[") ? pb_text_read_list(r, &at, msg)
                                               : pb_text_read_value(r, &at, msg);
    if (!e && !accept(r, ","))
        accept(r, ";");
    return e;
}

static void settle_maps(ProtobufCMessage *msg)
{
    for (unsigned i = 0; i < msg->descriptor->n_fields; i++)
        if (pb_field_is_map(msg->descriptor, &msg->descriptor->fields[i]))
            pb_field_settle_map(msg, &msg->descriptor->fields[i]);
}

/* pb_text_read_fields - read the contents of a message with its closing symbol; NULL = until the
 * end of the text. */
static struct err *pb_text_read_fields(struct reader *r, const struct frame *at,
                                       ProtobufCMessage *msg, const char *close)
{
    while (close ? !accept(r, close) : r->lx.token.kind != PB_TOKEN_END) {
        struct err *e = read_field(r, at, msg);
        if (e)
            return e;
    }
    settle_maps(msg);
    return NULL;
}

struct err *pb_text_read(const ProtobufCMessageDescriptor *type, const char *text, size_t len,
                         const char *file, size_t max_bytes, ProtobufCMessage **ret)
{
    struct reader r = {.file = file, .budget = {max_bytes}};
    pb_token_start(&r.lx, text, len);
    ProtobufCMessage *msg = pb_field_new_message(type, &r.budget);
    struct err *e = msg ? pb_text_read_fields(&r, NULL, msg, NULL) : pb_text_no_memory(&r, NULL);
    strbuf_fini(&r.scratch);
    if (e)
        pb_field_free_message(msg);
    else
        *ret = msg;
    return e;
}
