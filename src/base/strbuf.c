#include "base/strbuf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *strbuf_reserve(struct strbuf *sb, size_t n)
{
    if (sb->cap - sb->len < n + 1) {
        size_t cap = sb->cap ? sb->cap * 2 : 64;
        while (cap - sb->len < n + 1)
            cap *= 2;
        sb->data = mem_realloc(sb->data, cap);
        sb->cap = cap;
        sb->data[sb->len] = '\0';
    }
    return sb->data + sb->len;
}

void strbuf_append(struct strbuf *sb, const void *bytes, size_t n)
{
    char *to = strbuf_reserve(sb, n);
    if (n)
        memcpy(to, bytes, n);
    sb->len += n;
    sb->data[sb->len] = '\0';
}

void strbuf_puts(struct strbuf *sb, const char *s)
{
    strbuf_append(sb, s, strlen(s));
}

void strbuf_putc(struct strbuf *sb, char c)
{
    strbuf_append(sb, &c, 1);
}

void strbuf_printf(struct strbuf *sb, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len > 0) {
        vsnprintf(strbuf_reserve(sb, (size_t)len), (size_t)len + 1, fmt, args);
        sb->len += (size_t)len;
    }
    va_end(args);
}

const char *strbuf_str(const struct strbuf *sb)
{
    return sb->data ? sb->data : "";
}

char *strbuf_take(struct strbuf *sb)
{
    char *s = sb->data ? sb->data : mem_strdup("");
    *sb = (struct strbuf)STRBUF_INIT;
    return s;
}

void strbuf_fini(struct strbuf *sb)
{
    mem_free(sb->data);
    *sb = (struct strbuf)STRBUF_INIT;
}
