#include "http/api/http_json.h"

#include "base/mem.h"
#include "codec/json_tensor.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "os/pool.h"

#include <string.h>

#define SHARD_BYTES ((size_t)64 << 10)

/* the UTF-8 byte order mark, which some editors write at the beginning */
#define MARK "\xef\xbb\xbf"

_Static_assert(HTTP_BODY_PADDING >= YYJSON_PADDING_SIZE, "the parser writes behind the text");

/* True if any byte is a control character, which is rare. */
static bool any_control(const char *text, size_t len)
{
    const uint64_t ones = UINT64_MAX / 255; /* 1 in each byte */
    uint64_t found = 0;
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= len; i += sizeof(uint64_t)) {
        uint64_t eight;
        memcpy(&eight, text + i, sizeof(eight));
        /* Sets the high bit of a byte below 0x20, or of a byte after such a one. */
        found |= (eight - ones * 0x20) & ~eight;
    }
    found &= ones * 0x80;
    for (; i < len; i++)
        found |= (unsigned char)text[i] < 0x20;
    return found;
}

/* The first unescaped control character in a string, which JSON does not allow; NULL = none. The
 * parser accepts them because of the flag that makes it accept strings that are not UTF-8. */
static const char *bare_control(const char *text, size_t len)
{
    if (!any_control(text, len))
        return NULL;
    bool inside = false;
    for (const char *at = text, *end = text + len; at < end; at++) {
        if (*at == '"')
            inside = !inside;
        else if (inside && *at == '\\')
            at++;
        if (inside && at < end && (unsigned char)*at < 0x20)
            return at;
    }
    return NULL;
}

static struct err *bad_text(const char *why, size_t at)
{
    return err_new(STATUS_INTERNAL, "failed to parse the request JSON buffer: %s at %zu", why, at);
}

static struct err *not_parsed(const yyjson_read_err *why)
{
    /* The memory is two bytes per value; only arrays that are opened again and again need more. */
    if (why->code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return err_new(STATUS_INVALID_ARG, "%s", json_tensor_text(JSON_TENSOR_TOO_DEEP));
    return bad_text(why->msg, why->pos);
}

/* Checks what follows the document: spaces are allowed, and anything after a zero byte is
 * ignored, as in the reference. */
static struct err *check_end(const char *text, size_t at, size_t len)
{
    while (at < len && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r')))
        at++;
    return at < len && text[at] ? bad_text("unexpected content after document", at) : NULL;
}

struct err *http_json_parse(struct http_shard *s, char *text, size_t len, struct http_json *ret)
{
    /* As in the reference: NaN and infinities by name, and strings that are not UTF-8. */
    const yyjson_read_flag flags = YYJSON_READ_INSITU | YYJSON_READ_ALLOW_INF_AND_NAN |
                                   YYJSON_READ_ALLOW_INVALID_UNICODE | YYJSON_READ_STOP_WHEN_DONE;
    if (len >= sizeof(MARK) - 1 && memcmp(text, MARK, sizeof(MARK) - 1) == 0) {
        text += sizeof(MARK) - 1;
        len -= sizeof(MARK) - 1;
    }
    const char *control = bare_control(text, len);
    if (control)
        return bad_text(*control ? "Invalid escape character in string."
                                 : "Missing a closing quotation mark in string.",
                        (size_t)(control - text));
    size_t need = yyjson_read_max_memory_usage(len, flags);
    struct http_json j = {0};
    yyjson_alc alc;
    if (need <= SHARD_BYTES) {
        if (!s->json_memory)
            s->json_memory = mem_alloc(SHARD_BYTES);
        yyjson_alc_pool_init(&alc, s->json_memory, SHARD_BYTES);
    } else {
        struct err *e = pool_buf(need, &j.memory);
        if (e)
            return e;
        yyjson_alc_pool_init(&alc, j.memory->data, need);
    }
    char behind[YYJSON_PADDING_SIZE];
    memcpy(behind, text + len, sizeof(behind));
    memset(text + len, 0, sizeof(behind));
    yyjson_read_err why = {0};
    j.doc = yyjson_read_opts(text, len, flags, &alc, &why);
    memcpy(text + len, behind, sizeof(behind));
    struct err *e =
        j.doc ? check_end(text, yyjson_doc_get_read_size(j.doc), len) : not_parsed(&why);
    if (e) {
        buf_unref(j.memory);
        return e;
    }
    *ret = j;
    return NULL;
}

struct err *http_json_parse_body(struct http_shard *s, const struct http_message *m,
                                 struct http_json *ret)
{
    return m->body_len ? http_json_parse(s, m->body, m->body_len, ret)
                       : bad_text("The document is empty.", 0);
}

struct err *http_json_whole(const char *what, const char *text, size_t len)
{
    if (!memchr(text, 0, len))
        return NULL;
    return err_new(STATUS_INVALID_ARG, "%s '%s...' holds a zero byte", what, text);
}

void http_json_end(struct http_json *j)
{
    buf_unref(j->memory);
    *j = (struct http_json){0};
}
