#include "tracing/tracing_context.h"

#include <string.h>

/* 00-TRACE-SPAN-FLAGS */
#define TRACE_AT 3u
#define SPAN_AT  36u
#define FLAGS_AT 53u
#define TEXT_LEN 55u

/* Upper case is none: so says the source. */
static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_bytes(const char *text, size_t count, uint8_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool all_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

bool tracing_context_parse(const char *text, size_t len, struct tracing_context *ret)
{
    struct tracing_context c;
    uint8_t version;
    if (len < TEXT_LEN || text[2] != '-' || text[SPAN_AT - 1] != '-' || text[FLAGS_AT - 1] != '-')
        return false;
    if (!hex_bytes(text, 1, &version) || version == 0xff)
        return false;
    /* Later versions may have more behind it. */
    if (len > TEXT_LEN && (version == 0 || text[TEXT_LEN] != '-'))
        return false;
    if (!hex_bytes(text + TRACE_AT, sizeof(c.trace_id), c.trace_id) ||
        !hex_bytes(text + SPAN_AT, sizeof(c.span_id), c.span_id) ||
        !hex_bytes(text + FLAGS_AT, 1, &c.flags))
        return false;
    if (all_zero(c.trace_id, sizeof(c.trace_id)) || all_zero(c.span_id, sizeof(c.span_id)))
        return false;
    *ret = c;
    return true;
}

static char *hex_text(char *to, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    return to;
}

void tracing_context_format(const struct tracing_context *c, char ret[TRACING_CONTEXT_BYTES])
{
    memcpy(ret, "00-", 3);
    char *to = hex_text(ret + 3, c->trace_id, sizeof(c->trace_id));
    *to++ = '-';
    to = hex_text(to, c->span_id, sizeof(c->span_id));
    *to++ = '-';
    *hex_text(to, &c->flags, 1) = '\0';
}

bool tracing_context_state_fits(const char *text, size_t len)
{
    if (!len || len > TRACING_MAX_STATE_BYTES)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return true;
}
