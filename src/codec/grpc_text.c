#include "codec/grpc_text.h"

#include <stdint.h>
#include <string.h>

static time_ns unit_ns(char unit)
{
    switch (unit) {
    case 'H':
        return TIME_S(3600);
    case 'M':
        return TIME_S(60);
    case 'S':
        return TIME_S(1);
    case 'm':
        return TIME_MS(1);
    case 'u':
        return TIME_US(1);
    case 'n':
        return 1;
    default:
        return 0;
    }
}

bool grpc_text_timeout(const char *text, size_t len, time_ns *ret)
{
    if (len < 2 || len > 9)
        return false;
    time_ns n = 0;
    for (size_t i = 0; i + 1 < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (time_ns)(text[i] - '0');
    }
    time_ns unit = unit_ns(text[len - 1]);
    if (unit)
        *ret = n < GRPC_TEXT_MAX_TIMEOUT / unit ? n * unit : GRPC_TEXT_MAX_TIMEOUT;
    return unit != 0;
}

static bool grpc_text_plain(unsigned char c)
{
    return c >= 0x20 && c <= 0x7E && c != '%';
}

/* The length of the character here: a lead byte and its continuation bytes. */
static size_t character_bytes(const char *at)
{
    size_t n = 1;
    while (n < 4 && ((unsigned char)at[n] & 0xC0) == 0x80)
        n++;
    return n;
}

size_t grpc_text_encode(const char *message, char *to, size_t cap)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *begin = message;
    size_t n = 0;
    while (*message) {
        bool at_edge = *message == ' ' && (message == begin || !message[1]);
        bool one = grpc_text_plain((unsigned char)*message) && !at_edge;
        size_t bytes = one ? 1 : character_bytes(message);
        if (n + (one ? 1 : 3 * bytes) > cap)
            break;
        for (size_t i = 0; i < bytes; i++) {
            unsigned char c = (unsigned char)*message++;
            if (one) {
                to[n++] = (char)c;
                continue;
            }
            to[n++] = '%';
            to[n++] = hex[c >> 4];
            to[n++] = hex[c & 15];
        }
    }
    return n;
}

static int grpc_text_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t grpc_text_decode(const char *text, char *to, size_t cap)
{
    size_t n = 0;
    while (*text && n < cap) {
        int high = *text == '%' ? grpc_text_digit(text[1]) : -1;
        int low = high >= 0 ? grpc_text_digit(text[2]) : -1;
        to[n++] = low >= 0 ? (char)(unsigned char)(high * 16 + low) : *text;
        text += low >= 0 ? 3 : 1;
    }
    return n;
}

enum coding grpc_text_coding(const char *name, size_t len)
{
    enum coding c = coding_find(name, len);
    if (c == CODING_ZSTD || c == CODING_UNKNOWN)
        return CODING_UNKNOWN;
    return !len || memcmp(coding_name(c), name, len) == 0 ? c : CODING_UNKNOWN;
}

bool grpc_text_is_grpc(const char *content_type, size_t len)
{
    static const char base[] = "application/grpc";
    static const char proto[] = "+proto";
    if (len < sizeof(base) - 1 || memcmp(content_type, base, sizeof(base) - 1) != 0)
        return false;
    content_type += sizeof(base) - 1;
    len -= sizeof(base) - 1;
    if (len >= sizeof(proto) - 1 && memcmp(content_type, proto, sizeof(proto) - 1) == 0) {
        content_type += sizeof(proto) - 1;
        len -= sizeof(proto) - 1;
    }
    return len == 0 || *content_type == ';' || *content_type == ' ';
}
