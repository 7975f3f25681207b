#include "isolate/wire/isolate_wire.h"

#include <string.h>

#define ALIGN      64u
#define TEXT_NONE  UINT64_MAX
#define MOST_ERROR 32768u

void isolate_wire_put(struct strbuf *sb, uint64_t n)
{
    memcpy(strbuf_reserve(sb, sizeof(n)), &n, sizeof(n));
    sb->len += sizeof(n);
}

void isolate_wire_put_bytes(struct strbuf *sb, const void *bytes, uint64_t len)
{
    isolate_wire_put(sb, len);
    if (len)
        strbuf_append(sb, bytes, len);
}

void isolate_wire_put_text(struct strbuf *sb, const char *text)
{
    if (!text) {
        isolate_wire_put(sb, TEXT_NONE);
        return;
    }
    size_t len = strlen(text);
    isolate_wire_put(sb, len);
    strbuf_append(sb, text, len + 1);
}

void *isolate_wire_put_room(struct strbuf *sb, uint64_t len)
{
    isolate_wire_put(sb, len);
    size_t pad = -sb->len & (ALIGN - 1);
    char *to = strbuf_reserve(sb, pad + len);
    memset(to, 0, pad);
    sb->len += pad + len;
    return to + pad;
}

void isolate_wire_read(struct isolate_wire *w, const void *bytes, size_t len)
{
    *w = (struct isolate_wire){.begin = bytes, .at = bytes, .end = (const uint8_t *)bytes + len};
}

size_t isolate_wire_left(const struct isolate_wire *w)
{
    return w->bad ? 0 : (size_t)(w->end - w->at);
}

/* The next n bytes; NULL if fewer are left. */
static const uint8_t *isolate_wire_take(struct isolate_wire *w, uint64_t n)
{
    if (w->bad || n > isolate_wire_left(w)) {
        w->bad = true;
        return NULL;
    }
    const uint8_t *at = w->at;
    w->at += n;
    return at;
}

uint64_t isolate_wire_get(struct isolate_wire *w)
{
    uint64_t n = 0;
    const uint8_t *at = isolate_wire_take(w, sizeof(n));
    if (at)
        memcpy(&n, at, sizeof(n));
    return n;
}

uint64_t isolate_wire_get_most(struct isolate_wire *w, uint64_t most)
{
    uint64_t n = isolate_wire_get(w);
    if (n <= most)
        return n;
    w->bad = true;
    return 0;
}

const char *isolate_wire_get_text_or_null(struct isolate_wire *w)
{
    uint64_t len = isolate_wire_get(w);
    if (w->bad || len == TEXT_NONE)
        return NULL;
    const char *text =
        len < isolate_wire_left(w) ? (const char *)isolate_wire_take(w, len + 1) : NULL;
    if (text && text[len] == '\0' && !memchr(text, '\0', len))
        return text;
    w->bad = true;
    return NULL;
}

const char *isolate_wire_get_text(struct isolate_wire *w)
{
    const char *text = isolate_wire_get_text_or_null(w);
    w->bad |= !text;
    return text ? text : "";
}

const void *isolate_wire_get_bytes(struct isolate_wire *w, uint64_t *ret_len)
{
    uint64_t len = isolate_wire_get(w);
    const void *bytes = isolate_wire_take(w, len);
    *ret_len = bytes ? len : 0;
    return bytes;
}

const void *isolate_wire_get_room(struct isolate_wire *w, uint64_t *ret_len)
{
    uint64_t len = isolate_wire_get(w);
    (void)isolate_wire_take(w, -(uint64_t)(w->at - w->begin) & (ALIGN - 1));
    const void *bytes = isolate_wire_take(w, len);
    *ret_len = bytes ? len : 0;
    return bytes;
}

enum status isolate_wire_code(const struct err *e)
{
    return err_code(e) <= STATUS_CANCELLED ? err_code(e) : STATUS_UNKNOWN;
}

struct err *isolate_wire_get_error(struct isolate_wire *w, enum status code)
{
    const char *text = isolate_wire_get_text_or_null(w);
    if (!text)
        return NULL;
    size_t len = strnlen(text, MOST_ERROR);
    if (len == MOST_ERROR)
        while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--; /* do not cut inside a UTF-8 character */
    return err_new(code, "%.*s", (int)len, text);
}
