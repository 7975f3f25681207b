#include "codec/pb_json_read.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "codec/base64.h"
#include "codec/json_relax.h"
#include "codec/pb_field.h"
#include "codec/pb_name.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yyjson.h>

/* The most bytes of a value that a message quotes. */
#define QUOTE_MAX 40

/* The position of the reader: one frame per nested field, innermost first. */
struct frame {
    const struct frame *outer;
    const ProtobufCFieldDescriptor *field;
    const char *key; /* inside an entry of a map; else NULL */
    bool in_list;    /* inside an element of a list */
    size_t index;
};

struct reader {
    const char *what;
    struct pb_budget budget;
    unsigned depth;
};

static void pb_json_read_print_path(struct strbuf *sb, const struct frame *at)
{
    if (!at)
        return;
    pb_json_read_print_path(sb, at->outer);
    strbuf_printf(sb, "%s%s", sb->len ? "." : "", at->field->name);
    if (at->key)
        strbuf_printf(sb, "[\"%.*s\"]", QUOTE_MAX, at->key);
    else if (at->in_list)
        strbuf_printf(sb, "[%zu]", at->index);
}

__attribute__((format(printf, 3, 4), cold)) static struct err *
pb_json_read_fail(const struct reader *r, const struct frame *at, const char *fmt, ...)
{
    struct strbuf path = STRBUF_INIT;
    pb_json_read_print_path(&path, at);
    va_list args;
    va_start(args, fmt);
    struct err *e = err_vnew(STATUS_INVALID_ARG, fmt, args);
    va_end(args);
    if (path.len)
        e = err_wrap(e, "%s", strbuf_str(&path));
    strbuf_fini(&path);
    return err_wrap(e, "%s", r->what);
}

__attribute__((cold)) static struct err *pb_json_read_expected(const struct reader *r,
                                                               const struct frame *at,
                                                               const char *words, yyjson_val *v)
{
    if (yyjson_is_str(v)) {
        size_t len = yyjson_get_len(v);
        return pb_json_read_fail(r, at, "expected %s, found \"%.*s%s\"", words,
                                 (int)(len > QUOTE_MAX ? QUOTE_MAX : len), yyjson_get_str(v),
                                 len > QUOTE_MAX ? "..." : "");
    }
    if (yyjson_is_uint(v))
        return pb_json_read_fail(r, at, "expected %s, found %" PRIu64, words, yyjson_get_uint(v));
    if (yyjson_is_sint(v))
        return pb_json_read_fail(r, at, "expected %s, found %" PRId64, words, yyjson_get_sint(v));
    if (yyjson_is_bool(v))
        return pb_json_read_fail(r, at, "expected %s, found %s", words,
                                 yyjson_get_bool(v) ? "true" : "false");
    if (yyjson_is_real(v))
        return pb_json_read_fail(r, at, "expected %s, found %g", words, yyjson_get_real(v));
    return pb_json_read_fail(r, at, "expected %s, found %s", words,
                             yyjson_is_obj(v)   ? "an object"
                             : yyjson_is_arr(v) ? "a list"
                                                : "null");
}

__attribute__((cold)) static struct err *pb_json_read_no_memory(const struct reader *r,
                                                                const struct frame *at)
{
    return err_recode(pb_json_read_fail(r, at, "the message takes more memory than it may"),
                      STATUS_UNAVAILABLE);
}

static bool parse_decimal(const char *s, size_t len, bool *ret_negative, uint64_t *ret)
{
    const char *end = s + len;
    bool negative = len > 0 && *s == '-';
    uint64_t value = 0;
    s += negative || (len > 0 && *s == '+') ? 1 : 0;
    if (s == end)
        return false;
    for (; s < end; s++)
        if (*s < '0' || *s > '9' || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
            return false;
    *ret_negative = negative;
    *ret = value;
    return true;
}

/* to_integer - the sign and magnitude of a number, or of a string with a number. */
static bool to_integer(yyjson_val *v, bool *negative, uint64_t *magnitude)
{
    if (yyjson_is_str(v))
        return parse_decimal(yyjson_get_str(v), yyjson_get_len(v), negative, magnitude);
    *negative = false;
    if (yyjson_is_uint(v)) {
        *magnitude = yyjson_get_uint(v);
    } else if (yyjson_is_sint(v)) {
        *negative = true;
        *magnitude = 0 - (uint64_t)yyjson_get_sint(v);
    } else if (yyjson_is_real(v)) { /* 1e3 and 2.0 count as integers too */
        double real = yyjson_get_real(v);
        double size = fabs(real);
        if (!(size < 18446744073709551616.0) || floor(size) < size)
            return false;
        *negative = real < 0;
        *magnitude = (uint64_t)size;
    } else {
        return false;
    }
    return true;
}

static struct err *pb_json_read_integer(struct reader *r, const struct frame *at, yyjson_val *v,
                                        void *place)
{
    bool negative;
    uint64_t magnitude;
    if (to_integer(v, &negative, &magnitude) &&
        pb_field_put_integer(place, at->field->type, negative, magnitude))
        return NULL;
    return pb_json_read_expected(r, at, pb_field_integer_words(at->field->type), v);
}

static bool parse_real(const char *s, double *ret)
{
    if (strcmp(s, "NaN") == 0)
        *ret = (double)NAN;
    else if (strcmp(s, "Infinity") == 0)
        *ret = HUGE_VAL;
    else if (strcmp(s, "-Infinity") == 0)
        *ret = -HUGE_VAL;
    else {
        if (s[strspn(s, "0123456789.eE+-")] || !*s)
            return false;
        char *end;
        locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        *ret = strtod_l(s, &end, c);
        freelocale(c);
        return *end == '\0';
    }
    return true;
}

static struct err *pb_json_read_real(struct reader *r, const struct frame *at, yyjson_val *v,
                                     void *place)
{
    double value = 0;
    if (yyjson_is_num(v))
        value = yyjson_get_num(v);
    else if (!yyjson_is_str(v) || strlen(yyjson_get_str(v)) != yyjson_get_len(v) ||
             !parse_real(yyjson_get_str(v), &value))
        return pb_json_read_expected(r, at, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"", v);
    pb_field_put_double(place, at->field->type, value);
    return NULL;
}

static struct err *pb_json_read_bool(struct reader *r, const struct frame *at, yyjson_val *v,
                                     protobuf_c_boolean *place)
{
    const char *word = yyjson_is_str(v) ? yyjson_get_str(v) : "";
    bool yes = strcasecmp(word, "true") == 0;
    if (!yyjson_is_bool(v) && !yes && strcasecmp(word, "false") != 0)
        return pb_json_read_expected(r, at, "true or false", v);
    *place = yes || yyjson_get_bool(v);
    return NULL;
}

static struct err *pb_json_read_enum(struct reader *r, const struct frame *at, yyjson_val *v,
                                     int *place)
{
    const ProtobufCEnumDescriptor *type = at->field->descriptor;
    if (!yyjson_is_str(v))
        return pb_json_read_integer(r, at, v, place);
    const char *name = yyjson_get_str(v);
    const ProtobufCEnumValue *value = pb_name_json_value(type, name, yyjson_get_len(v));
    bool negative;
    uint64_t number;
    if (!value && to_integer(v, &negative, &number))
        return pb_json_read_integer(r, at, v, place);
    if (!value) {
        const char *near = pb_name_nearest_value(type, name, yyjson_get_len(v));
        return pb_json_read_fail(r, at, "expected a value of the enum %s, found \"%.*s\"%s%s%s",
                                 type->short_name, QUOTE_MAX, name, near ? "; did you mean \"" : "",
                                 near ? near : "", near ? "\"?" : "");
    }
    *place = value->value;
    return NULL;
}

static struct err *pb_json_read_bytes(struct reader *r, const struct frame *at, yyjson_val *v,
                                      void *place)
{
    if (!yyjson_is_str(v))
        return pb_json_read_expected(r, at, "a string of base64", v);
    size_t len = yyjson_get_len(v);
    char *bytes = mem_try_alloc(base64_room(len), 8);
    size_t n;
    struct err *e = NULL;
    if (!bytes)
        e = pb_json_read_no_memory(r, at);
    else if (!base64_decode(yyjson_get_str(v), len, BASE64_ONE_LINE, bytes, &n))
        e = pb_json_read_expected(r, at, "a string of base64", v);
    else if (!pb_field_put_bytes(place, at->field, bytes, n, &r->budget))
        e = pb_json_read_no_memory(r, at);
    mem_free(bytes);
    return e;
}

static struct err *pb_json_read_string(struct reader *r, const struct frame *at, yyjson_val *v,
                                       void *place)
{
    if (!yyjson_is_str(v))
        return pb_json_read_expected(r, at, "a string", v);
    const char *s = yyjson_get_str(v);
    size_t len = yyjson_get_len(v);
    if (memchr(s, 0, len))
        return pb_json_read_fail(r, at, "expected a string without zero bytes");
    return pb_field_put_bytes(place, at->field, s, len, &r->budget) ? NULL
                                                                    : pb_json_read_no_memory(r, at);
}

static struct err *read_object(struct reader *r, const struct frame *at, yyjson_val *obj,
                               ProtobufCMessage *msg);

static struct err *pb_json_read_submessage(struct reader *r, const struct frame *at, yyjson_val *v,
                                           ProtobufCMessage **place)
{
    if (!yyjson_is_obj(v))
        return pb_json_read_expected(r, at, "an object", v);
    if (r->depth == PB_JSON_READ_MAX_DEPTH)
        return pb_json_read_fail(r, at, "objects are nested deeper than %u",
                                 PB_JSON_READ_MAX_DEPTH);
    *place = pb_field_new_message(at->field->descriptor, &r->budget);
    if (!*place)
        return pb_json_read_no_memory(r, at);
    r->depth++;
    struct err *e = read_object(r, at, v, *place);
    r->depth--;
    return e;
}

static struct err *pb_json_read_value(struct reader *r, const struct frame *at, yyjson_val *v,
                                      ProtobufCMessage *msg)
{
    void *place = pb_field_add(msg, at->field, &r->budget);
    if (!place)
        return pb_json_read_no_memory(r, at);
    switch ((int)at->field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return pb_json_read_submessage(r, at, v, place);
    case PROTOBUF_C_TYPE_STRING:
        return pb_json_read_string(r, at, v, place);
    case PROTOBUF_C_TYPE_BYTES:
        return pb_json_read_bytes(r, at, v, place);
    case PROTOBUF_C_TYPE_ENUM:
        return pb_json_read_enum(r, at, v, place);
    case PROTOBUF_C_TYPE_BOOL:
        return pb_json_read_bool(r, at, v, place);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return pb_json_read_real(r, at, v, place);
    default:
        return pb_json_read_integer(r, at, v, place);
    }
}

static struct err *read_map_key(struct reader *r, const struct frame *at, yyjson_val *key,
                                ProtobufCMessage *entry)
{
    struct frame inner = {.outer = at, .field = &entry->descriptor->fields[0]};
    if (inner.field->type != PROTOBUF_C_TYPE_BOOL)
        return pb_json_read_value(r, &inner, key, entry);
    const char *s = yyjson_get_str(key);
    if (strcmp(s, "true") != 0 && strcmp(s, "false") != 0)
        return pb_json_read_expected(r, &inner, "\"true\" or \"false\"", key);
    *(protobuf_c_boolean *)pb_field_add(entry, inner.field, &r->budget) = *s == 't';
    return NULL;
}

static struct err *read_map(struct reader *r, struct frame *at, yyjson_val *obj,
                            ProtobufCMessage *msg)
{
    if (!yyjson_is_obj(obj))
        return pb_json_read_expected(r, at, "an object", obj);
    yyjson_obj_iter it = yyjson_obj_iter_with(obj);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&it));) {
        at->key = yyjson_get_str(key);
        ProtobufCMessage **place = pb_field_add(msg, at->field, &r->budget);
        if (!place)
            return pb_json_read_no_memory(r, at);
        ProtobufCMessage *entry = *place = pb_field_new_message(at->field->descriptor, &r->budget);
        if (!entry)
            return pb_json_read_no_memory(r, at);
        struct err *e = read_map_key(r, at, key, entry);
        struct frame inner = {.outer = at, .field = &entry->descriptor->fields[1]};
        if (!e)
            e = pb_json_read_value(r, &inner, yyjson_obj_iter_get_val(key), entry);
        if (e)
            return e;
    }
    at->key = NULL;
    pb_field_settle_map(msg, at->field);
    return NULL;
}

/* Reads a single value, or the values of a list, also of nested lists; null is skipped. A value
 * that is not in a list counts as a list of one. */
static struct err *pb_json_read_list(struct reader *r, struct frame *at, yyjson_val *v,
                                     ProtobufCMessage *msg)
{
    if (yyjson_is_null(v))
        return NULL;
    if (!yyjson_is_arr(v)) {
        struct err *e = pb_json_read_value(r, at, v, msg);
        at->index++;
        return e;
    }
    if (r->depth == PB_JSON_READ_MAX_DEPTH)
        return pb_json_read_fail(r, at, "objects are nested deeper than %u",
                                 PB_JSON_READ_MAX_DEPTH);
    at->in_list = true;
    struct err *e = NULL;
    yyjson_arr_iter it = yyjson_arr_iter_with(v);
    r->depth++;
    for (yyjson_val *each; !e && (each = yyjson_arr_iter_next(&it));)
        e = pb_json_read_list(r, at, each, msg);
    r->depth--;
    return e;
}

static struct err *read_member(struct reader *r, const struct frame *outer, yyjson_val *key,
                               yyjson_val *v, ProtobufCMessage *msg)
{
    const char *name = yyjson_get_str(key);
    size_t len = yyjson_get_len(key);
    struct frame at = {.outer = outer, .field = pb_name_json_field(msg->descriptor, name, len)};
    if (!at.field) {
        const char *near = pb_name_nearest_field(msg->descriptor, name, len);
        return pb_json_read_fail(
            r, outer, "expected a field of %s, found \"%.*s\"%s%s%s", msg->descriptor->short_name,
            QUOTE_MAX, name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    if (yyjson_is_null(v))
        return NULL;
    if (pb_field_is_set(msg, at.field))
        return pb_json_read_fail(r, outer, "expected '%s' once, found it again", at.field->name);
    const ProtobufCFieldDescriptor *rival = pb_field_rival(msg, at.field);
    if (rival)
        return pb_json_read_fail(r, outer, "expected only one of '%s' and '%s', found both",
                                 rival->name, at.field->name);
    if (pb_field_is_map(msg->descriptor, at.field))
        return read_map(r, &at, v, msg);
    return at.field->label == PROTOBUF_C_LABEL_REPEATED ? pb_json_read_list(r, &at, v, msg)
                                                        : pb_json_read_value(r, &at, v, msg);
}

static struct err *read_object(struct reader *r, const struct frame *at, yyjson_val *obj,
                               ProtobufCMessage *msg)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(obj);
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&it));) {
        struct err *e = read_member(r, at, key, yyjson_obj_iter_get_val(key), msg);
        if (e)
            return e;
    }
    return NULL;
}

/* not_json - the error that says where and why the text is not JSON. */
__attribute__((cold)) static struct err *not_json(const char *what, const char *text,
                                                  const yyjson_read_err *why)
{
    if (why->code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return err_new(STATUS_UNAVAILABLE, "%s: no memory to read the JSON", what);
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < why->pos; i++, column++)
        if (text[i] == '\n') {
            line++;
            column = 0;
        }
    return err_new(STATUS_INVALID_ARG, "%s:%zu:%zu: not valid JSON: %s", what, line, column,
                   why->msg);
}

/* Reads strict JSON first, then relaxed JSON. An error refers to the original text. */
static struct err *pb_json_read_text(const char *text, size_t len, const char *what,
                                     yyjson_doc **ret)
{
    yyjson_read_err why;
    /* Without the in-situ flag yyjson only reads the text, so the const can be cast away. */
    *ret = yyjson_read_opts((char *)(uintptr_t)text, len, YYJSON_READ_NOFLAG, NULL, &why);
    if (*ret || why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return *ret ? NULL : not_json(what, text, &why);
    size_t relaxed_len;
    char *relaxed = json_relax(text, len, &relaxed_len);
    if (relaxed)
        *ret = yyjson_read(relaxed, relaxed_len, YYJSON_READ_ALLOW_TRAILING_COMMAS);
    mem_free(relaxed);
    return *ret ? NULL : not_json(what, text, &why);
}

struct err *pb_json_read_message(const ProtobufCMessageDescriptor *type, const char *text,
                                 size_t len, const char *what, size_t max_bytes,
                                 ProtobufCMessage **ret)
{
    struct reader r = {.what = what, .budget = {max_bytes}};
    yyjson_doc *doc;
    struct err *e = pb_json_read_text(text, len, what, &doc);
    if (e)
        return e;
    yyjson_val *root = yyjson_doc_get_root(doc);
    ProtobufCMessage *msg = NULL;
    if (!yyjson_is_obj(root))
        e = pb_json_read_expected(&r, NULL, "an object", root);
    else if (!(msg = pb_field_new_message(type, &r.budget)))
        e = pb_json_read_no_memory(&r, NULL);
    else
        e = read_object(&r, NULL, root, msg);
    yyjson_doc_free(doc);
    if (e)
        pb_field_free_message(msg);
    else
        *ret = msg;
    return e;
}
