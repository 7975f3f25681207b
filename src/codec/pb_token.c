#include "codec/pb_token.h"

#include "base/mem.h"
#include "codec/pb_utf8.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_octal(int c)
{
    return c >= '0' && c <= '7';
}

static int hex_value(int c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_name_start(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* peek - the byte `ahead` of the cursor; -1 after the end. */
static int peek(const struct pb_lexer *lx, size_t ahead)
{
    return (size_t)(lx->end - lx->cur) > ahead ? (unsigned char)lx->cur[ahead] : -1;
}

static void newline(struct pb_lexer *lx)
{
    lx->line++;
    lx->line_start = lx->cur;
}

static void skip_blank(struct pb_lexer *lx)
{
    for (;;) {
        int c = peek(lx, 0);
        if (c == '#') {
            const char *eol = memchr(lx->cur, '\n', (size_t)(lx->end - lx->cur));
            lx->cur = eol ? eol : lx->end;
        } else if (c == '\n') {
            lx->cur++;
            newline(lx);
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            lx->cur++;
        } else {
            return;
        }
    }
}

static void bad(struct pb_lexer *lx, const char *problem)
{
    lx->token.kind = PB_TOKEN_BAD;
    lx->token.problem = problem;
}

static void skip_digits(struct pb_lexer *lx)
{
    while (is_digit(peek(lx, 0)))
        lx->cur++;
}

static void read_decimal(struct pb_lexer *lx)
{
    bool is_float = false;
    skip_digits(lx);
    if (peek(lx, 0) == '.') {
        is_float = true;
        lx->cur++;
        skip_digits(lx);
    }
    if (peek(lx, 0) == 'e' || peek(lx, 0) == 'E') {
        is_float = true;
        lx->cur++;
        if (peek(lx, 0) == '-' || peek(lx, 0) == '+')
            lx->cur++;
        if (!is_digit(peek(lx, 0))) {
            bad(lx, "a number whose exponent has no digits");
            return;
        }
        skip_digits(lx);
    }
    if (peek(lx, 0) == 'f' || peek(lx, 0) == 'F') {
        is_float = true;
        lx->cur++;
    }
    lx->token.kind = is_float ? PB_TOKEN_FLOAT : PB_TOKEN_INTEGER;
    if (is_float && peek(lx, 0) == '.')
        bad(lx, "a number with two points");
}

static void pb_token_read_number(struct pb_lexer *lx)
{
    int second = peek(lx, 1);
    if (peek(lx, 0) != '0' || (second != 'x' && second != 'X' && !is_digit(second))) {
        read_decimal(lx);
        return;
    }
    lx->token.kind = PB_TOKEN_INTEGER;
    if (is_digit(second)) {
        while (is_octal(peek(lx, 0)))
            lx->cur++;
        if (is_digit(peek(lx, 0)))
            bad(lx, "a number that starts with 0, hence octal, with a digit over 7");
    } else {
        lx->cur += 2;
        if (hex_value(peek(lx, 0)) < 0)
            bad(lx, "0x without hexadecimal digits");
        while (hex_value(peek(lx, 0)) >= 0)
            lx->cur++;
    }
    if (lx->token.kind == PB_TOKEN_INTEGER && peek(lx, 0) == '.')
        bad(lx, "a hexadecimal or octal number with a point");
}

static void read_spaced_number(struct pb_lexer *lx)
{
    pb_token_read_number(lx);
    if (lx->token.kind != PB_TOKEN_BAD && is_name_start(peek(lx, 0)))
        bad(lx, "a number and a name without a space between them");
}

/* escape_length - the length of a valid escape after the backslash; 0 = invalid. */
static size_t escape_length(const struct pb_lexer *lx)
{
    int c = peek(lx, 0);
    if (c > 0 && strchr("abfnrtv\\?'\"", c))
        return 1;
    if (is_octal(c))
        return 1; /* further digits are ordinary bytes here */
    if (c == 'x')
        return hex_value(peek(lx, 1)) >= 0 ? 2 : 0;
    if (c != 'u' && c != 'U')
        return 0;
    size_t digits = c == 'u' ? 4 : 8;
    uint32_t code = 0;
    for (size_t i = 1; i <= digits; i++) {
        int v = hex_value(peek(lx, i));
        if (v < 0)
            return 0;
        code = code << 4 | (uint32_t)v;
    }
    return code <= 0x10FFFF ? digits + 1 : 0;
}

static void pb_token_read_string(struct pb_lexer *lx)
{
    char quote = *lx->cur++;
    lx->token.kind = PB_TOKEN_STRING;
    for (;;) {
        int c = peek(lx, 0);
        if (c < 0) {
            bad(lx, "a string without its closing quote");
            return;
        }
        lx->cur++;
        if (c == quote)
            return;
        if (c == '\n') {
            bad(lx, "a string without its closing quote on the same line");
            return;
        }
        if (c == '\\') {
            size_t n = escape_length(lx);
            if (n == 0) {
                bad(lx, "a string with an escape that does not exist");
                return;
            }
            lx->cur += n;
        }
    }
}

void pb_token_next(struct pb_lexer *lx)
{
    if (lx->token.kind == PB_TOKEN_BAD)
        return;
    const char *before = lx->cur;
    bool after_name = lx->token.kind == PB_TOKEN_NAME;
    skip_blank(lx);
    lx->token = (struct pb_token){.kind = PB_TOKEN_SYMBOL,
                                  .start = lx->cur,
                                  .line = lx->line,
                                  .column = (uint32_t)(lx->cur - lx->line_start) + 1};
    int c = peek(lx, 0);
    if (c < 0) {
        lx->token.kind = PB_TOKEN_END;
    } else if (is_name_start(c)) {
        lx->token.kind = PB_TOKEN_NAME;
        while (is_name_start(peek(lx, 0)) || is_digit(peek(lx, 0)))
            lx->cur++;
    } else if (is_digit(c) || (c == '.' && is_digit(peek(lx, 1)))) {
        read_spaced_number(lx);
        if (c == '.' && after_name && before == lx->token.start)
            bad(lx, "a name and a number without a space between them");
    } else if (c == '"' || c == '\'') {
        pb_token_read_string(lx);
    } else {
        lx->cur++;
        if (c < ' ' || c > '~')
            bad(lx, "a byte that is not printable ASCII, outside of quotes");
    }
    lx->token.len = (size_t)(lx->cur - lx->token.start);
}

void pb_token_start(struct pb_lexer *lx, const char *text, size_t len)
{
    *lx = (struct pb_lexer){.cur = text, .end = text + len, .line_start = text, .line = 1};
    pb_token_next(lx);
}

bool pb_token_is(const struct pb_token *t, const char *what)
{
    return (t->kind == PB_TOKEN_SYMBOL || t->kind == PB_TOKEN_NAME) && strlen(what) == t->len &&
           memcmp(t->start, what, t->len) == 0;
}

bool pb_token_integer(const struct pb_token *t, uint64_t *ret)
{
    const char *p = t->start;
    const char *end = p + t->len;
    uint64_t base = 10;
    if (*p == '0' && t->len > 1) {
        bool hex = p[1] == 'x' || p[1] == 'X';
        base = hex ? 16 : 8;
        p += hex ? 2 : 1;
    }
    uint64_t value = 0;
    for (; p < end; p++)
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (uint64_t)hex_value(*p), &value))
            return false;
    *ret = value;
    return true;
}

double pb_token_double(const struct pb_token *t)
{
    char small[64];
    char *copy = t->len < sizeof(small) ? small : mem_strndup(t->start, t->len);
    if (copy == small) {
        memcpy(small, t->start, t->len);
        small[t->len] = '\0';
    }
    /* The locale of the host program may use commas as decimal points. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double value = strtod_l(copy, NULL, c); /* stops at a trailing f */
    freelocale(c);
    if (copy != small)
        mem_free(copy);
    return value;
}

/* read_digits - read up to `most` digits of a base at *p; moves *p. */
static uint32_t read_digits(const char **p, const char *end, uint32_t base, int most)
{
    uint32_t value = 0;
    for (; most > 0 && *p < end; most--, ++*p) {
        int v = hex_value(**p);
        if (v < 0 || (uint32_t)v >= base)
            break;
        value = value * base + (uint32_t)v;
    }
    return value;
}

static void unquote_unicode(const char **p, const char *end, struct strbuf *out)
{
    uint32_t code = read_digits(p, end, 16, (*p)[-1] == 'u' ? 4 : 8);
    if (code >= 0xD800 && code <= 0xDBFF && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        const char *q = *p + 2;
        uint32_t low = read_digits(&q, end, 16, 4);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            *p = q;
        }
    }
    char bytes[4];
    strbuf_append(out, bytes, pb_utf8_encode(code, bytes));
}

void pb_token_unquote(const struct pb_token *t, struct strbuf *out)
{
    static const char letters[] = "abfnrtv";
    static const char meanings[] = "\a\b\f\n\r\t\v";
    const char *p = t->start + 1;
    const char *end = t->start + t->len - 1;
    while (p < end) {
        const char *plain = memchr(p, '\\', (size_t)(end - p));
        strbuf_append(out, p, (size_t)((plain ? plain : end) - p));
        if (!plain)
            return;
        char c = plain[1];
        p = plain + 2;
        const char *letter = strchr(letters, c);
        if (is_octal(c)) {
            p--;
            strbuf_putc(out, (char)read_digits(&p, end, 8, 3));
        } else if (c == 'x') {
            strbuf_putc(out, (char)read_digits(&p, end, 16, 2));
        } else if (c == 'u' || c == 'U') {
            unquote_unicode(&p, end, out);
        } else {
            strbuf_putc(out, letter ? meanings[letter - letters] : c);
        }
    }
}
