#include "metrics/prometheus.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* The length of the UTF-8 character at s; 0 = invalid. The string ends in NUL. */
static size_t utf8_len(const unsigned char *s)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t n = 1; n <= 4; n++) {
        if ((s[0] & forms[n - 1].mask) != forms[n - 1].lead)
            continue;
        uint32_t c = s[0] & (unsigned char)~forms[n - 1].mask;
        for (size_t i = 1; i < n; i++) {
            if ((s[i] & 0xc0) != 0x80)
                return 0;
            c = c << 6 | (s[i] & 0x3fu);
        }
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        return c < forms[n - 1].least || c > 0x10ffff || surrogate ? 0 : n;
    }
    return 0;
}

static void escaped(struct strbuf *out, const char *text, bool quotes)
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = utf8_len(s);
        if (n == 0) {
            strbuf_puts(out, "\xef\xbf\xbd");
            n = 1;
        } else if (*s == '\n') {
            strbuf_puts(out, "\\n");
        } else if (*s == '\\') {
            strbuf_puts(out, "\\\\");
        } else if (*s == '"' && quotes) {
            strbuf_puts(out, "\\\"");
        } else {
            strbuf_append(out, s, n);
        }
        s += n;
    }
}

void prometheus_family(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_printf(out, "# HELP %s ", name);
    escaped(out, help, false);
    strbuf_printf(out, "\n# TYPE %s %s\n", name, type);
}

void prometheus_label_name(struct strbuf *out, const char *name)
{
    for (const char *s = name; *s; s++) {
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_';
        bool digit = *s >= '0' && *s <= '9';
        strbuf_putc(out, letter || (digit && out->len != 0) ? *s : '_');
    }
}

void prometheus_label(struct strbuf *labels, const char *name, const char *value)
{
    if (labels->len)
        strbuf_putc(labels, ',');
    strbuf_puts(labels, name);
    strbuf_puts(labels, "=\"");
    escaped(labels, value, true);
    strbuf_putc(labels, '"');
}

static void put_name(struct strbuf *out, const char *name, const char *suffix, const char *labels)
{
    strbuf_puts(out, name);
    strbuf_puts(out, suffix);
    if (*labels) {
        strbuf_putc(out, '{');
        strbuf_puts(out, labels);
        strbuf_putc(out, '}');
    }
    strbuf_putc(out, ' ');
}

void prometheus_sample(struct strbuf *out, const char *name, const char *suffix, const char *labels,
                       uint64_t value)
{
    put_name(out, name, suffix, labels);
    strbuf_printf(out, "%" PRIu64 "\n", value);
}

void prometheus_parts(struct strbuf *out, uint64_t whole, uint64_t part, uint64_t scale)
{
    strbuf_printf(out, "%" PRIu64, whole);
    if (part != 0)
        strbuf_putc(out, '.');
    for (; part != 0; part %= scale) {
        scale /= 10;
        strbuf_putc(out, (char)('0' + part / scale));
    }
}

void prometheus_sample_parts(struct strbuf *out, const char *name, const char *suffix,
                             const char *labels, uint64_t whole, uint64_t part, uint64_t scale)
{
    put_name(out, name, suffix, labels);
    prometheus_parts(out, whole, part, scale);
    strbuf_putc(out, '\n');
}
