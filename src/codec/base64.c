#include "codec/base64.h"

#include <stdint.h>

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

bool base64_decode(const char *text, size_t len, enum base64_lines lines, void *to, size_t *ret_len)
{
    unsigned char *out = to;
    uint32_t bits = 0;
    unsigned got = 0; /* characters of the current group */
    unsigned padding = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if ((c == '\r' || c == '\n') && lines == BASE64_LINES)
            continue;
        if (c == '=') {
            padding++;
            continue;
        }
        int v = base64_value(c);
        if (v < 0 || padding)
            return false;
        bits = bits << 6 | (uint32_t)v;
        if (++got < 4)
            continue;
        *out++ = (unsigned char)(bits >> 16);
        *out++ = (unsigned char)(bits >> 8);
        *out++ = (unsigned char)bits;
        got = 0;
    }
    if (got == 1 || (padding && got + padding != 4))
        return false;
    if (got == 2)
        *out++ = (unsigned char)(bits >> 4);
    if (got == 3) {
        *out++ = (unsigned char)(bits >> 10);
        *out++ = (unsigned char)(bits >> 2);
    }
    *ret_len = (size_t)(out - (unsigned char *)to);
    return true;
}

char *base64_encode(char *to, const void *data, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = data;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t bits = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                        (left > 2 ? from[i + 2] : 0);
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[bits & 63] : '=';
    }
    return to;
}
