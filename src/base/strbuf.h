#pragma once
/* A growing byte string that always ends in NUL. If a peer chooses the size, the caller must
 * limit it. */
#include <stddef.h>

struct strbuf {
    char *data; /* NULL until the first byte; else NUL at data[len] */
    size_t len;
    size_t cap;
};

#define STRBUF_INIT \
    {               \
        NULL, 0, 0  \
    }

/* strbuf_reserve - make room for n more bytes; returns where they go. */
char *strbuf_reserve(struct strbuf *sb, size_t n);
void strbuf_append(struct strbuf *sb, const void *bytes, size_t n);
void strbuf_puts(struct strbuf *sb, const char *s);
void strbuf_putc(struct strbuf *sb, char c);
__attribute__((format(printf, 2, 3))) void strbuf_printf(struct strbuf *sb, const char *fmt, ...);

/* strbuf_str - the string so far, "" when empty; owned by the buffer. */
const char *strbuf_str(const struct strbuf *sb);

/* strbuf_take - the string, which the caller then owns (mem_free); the buffer is empty again.
 * Never NULL. */
char *strbuf_take(struct strbuf *sb);
void strbuf_fini(struct strbuf *sb);
