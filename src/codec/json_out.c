#include "codec/json_out.h"

#include "base/check.h"
#include "base/strbuf.h"

#include <math.h>
#include <string.h>
#include <yyjson.h>

/* How many numbers go through the library at once, and the memory that it needs for them. */
#define BLOCK       32u
#define BLOCK_BYTES 4096u

char *json_out_text(char *to, const char *text, size_t len)
{
    memcpy(to, text, len);
    return to + len;
}

/* The character after the backslash for a byte; 0 = no escape needed, 'u' = \u00XX. */
static char escape_of(unsigned char c)
{
    static const char control[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu";
    if (c < 0x20)
        return control[c];
    return c == '"' || c == '\\' ? (char)c : 0;
}

char *json_out_string(char *to, const char *s, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";
    *to++ = '"';
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        char escape = escape_of(c);
        if (!escape) {
            *to++ = (char)c;
            continue;
        }
        *to++ = '\\';
        *to++ = escape;
        if (escape == 'u') {
            *to++ = '0';
            *to++ = '0';
            *to++ = hex[c >> 4];
            *to++ = hex[c & 15];
        }
    }
    *to++ = '"';
    return to;
}

void json_out_put(struct strbuf *sb, const char *s)
{
    size_t len = strlen(s);
    char *to = strbuf_reserve(sb, json_out_string_bytes(len));
    char *end = json_out_string(to, s, len);
    *end = '\0'; /* strbuf_reserve has room for it */
    sb->len += (size_t)(end - to);
}

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

char *json_out_uint(char *to, uint64_t n)
{
    if (n < 10) {
        *to = (char)('0' + n);
        return to + 1;
    }
    if (n >= 100)
        to = json_out_uint(to, n / 100);
    memcpy(to, digit_pairs + n % 100 * 2, 2);
    return to + 2;
}

char *json_out_int(char *to, int64_t n)
{
    if (n >= 0)
        return json_out_uint(to, (uint64_t)n);
    *to++ = '-';
    return json_out_uint(to, (uint64_t)0 - (uint64_t)n);
}

char *json_out_bool(char *to, bool b)
{
    return b ? JSON_OUT_LITERAL(to, "true") : JSON_OUT_LITERAL(to, "false");
}

/* True for a number with at most four decimals and fifteen digits: multiplied by 10000 it is a
 * whole number, and since 15 digits distinguish any two doubles, these digits are the shortest
 * text. Such numbers are common and this is fast; other numbers go through the library in
 * blocks. */
static bool is_short(double d, int64_t *ret_scaled)
{
    double scaled = d * 1e4;
    if (!(fabs(scaled) < 1e15) || (d == 0 && signbit(d)))
        return false;
    *ret_scaled = (int64_t)scaled;
    return (double)*ret_scaled == scaled && scaled / 1e4 == d;
}

static char *put_short(char *to, int64_t scaled)
{
    uint64_t n = (uint64_t)scaled;
    if (scaled < 0) {
        *to++ = '-';
        n = 0 - n;
    }
    uint64_t decimals = n % 10000;
    to = json_out_uint(to, n / 10000);
    *to++ = '.';
    if (decimals % 100) {
        memcpy(to, digit_pairs + decimals / 100 * 2, 2);
        memcpy(to + 2, digit_pairs + decimals % 100 * 2, 2);
        return to + (to[3] == '0' ? 3 : 4);
    }
    memcpy(to, digit_pairs + decimals / 100 * 2, 2);
    return to + (to[1] == '0' ? 1 : 2);
}

/* Writes n <= BLOCK numbers as the elements of a JSON array, without its brackets. */
static char *put_block(char *to, const double *values, size_t n)
{
    yyjson_val array[BLOCK + 1];
    array[0].tag = 0;
    unsafe_yyjson_set_arr(&array[0], n);
    array[0].uni.ofs = (n + 1) * sizeof(yyjson_val);
    for (size_t i = 1; i <= n; i++) {
        array[i].tag = 0;
        unsafe_yyjson_set_real(&array[i], values[i - 1]);
    }
    _Alignas(16) char memory[BLOCK_BYTES];
    yyjson_alc alc;
    yyjson_alc_pool_init(&alc, memory, sizeof(memory));
    size_t len;
    char *text = yyjson_val_write_opts(array, YYJSON_WRITE_ALLOW_INF_AND_NAN, &alc, &len, NULL);
    CHECK(text);
    return json_out_text(to, text + 1, len - 2);
}

char *json_out_real(char *to, double d)
{
    int64_t scaled;
    return is_short(d, &scaled) ? put_short(to, scaled) : put_block(to, &d, 1);
}

/* Writes n <= BLOCK numbers. If one is not short, all of them go through the library. */
static char *put_numbers(char *to, const double *values, size_t n)
{
    char *at = to;
    int64_t scaled;
    for (size_t i = 0; i < n; i++) {
        if (!is_short(values[i], &scaled))
            return put_block(to, values, n);
        if (i)
            *at++ = ',';
        at = put_short(at, scaled);
    }
    return at;
}

char *json_out_floats(char *to, const void *values, size_t n)
{
    const char *from = values;
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t step = n - done < BLOCK ? n - done : BLOCK;
        double wide[BLOCK];
        for (size_t i = 0; i < step; i++) {
            float f;
            memcpy(&f, from + (done + i) * sizeof(f), sizeof(f));
            wide[i] = (double)f;
        }
        if (done)
            *to++ = ',';
        to = put_numbers(to, wide, step);
    }
    return to;
}

char *json_out_doubles(char *to, const void *values, size_t n)
{
    const char *from = values;
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t step = n - done < BLOCK ? n - done : BLOCK;
        double block[BLOCK];
        memcpy(block, from + done * sizeof(double), step * sizeof(double));
        if (done)
            *to++ = ',';
        to = put_numbers(to, block, step);
    }
    return to;
}
