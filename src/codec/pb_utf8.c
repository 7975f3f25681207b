#include "codec/pb_utf8.h"

#include <string.h>

/* tail - the number of continuation bytes after a lead byte, and the allowed range of the first
 * of them; -1 = not a lead byte. */
static int tail(unsigned char lead, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 1;
    if ((lead & 0xF0) == 0xE0) {
        if (lead == 0xE0)
            *lo = 0xA0;
        if (lead == 0xED)
            *hi = 0x9F;
        return 2;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        if (lead == 0xF0)
            *lo = 0x90;
        if (lead == 0xF4)
            *hi = 0x8F;
        return 3;
    }
    return -1;
}

#define HIGH_BITS 0x8080808080808080u

static uint64_t load(const unsigned char *p, size_t len)
{
    uint64_t v = 0;
    memcpy(&v, p, len);
    return v;
}

/* True for names and the like, of 4 to 16 bytes, if they are ASCII: looked at in two pieces, which
 * may overlap. */
static bool is_short_ascii(const unsigned char *p, size_t len)
{
    const unsigned char *end = p + len;
    if (len < 4 || len > 16)
        return false;
    uint64_t all = len < 8 ? load(p, 4) | load(end - 4, 4) : load(p, 8) | load(end - 8, 8);
    return (all & HIGH_BITS) == 0;
}

bool pb_utf8_valid(const void *data, size_t len)
{
    const unsigned char *p = data;
    if (is_short_ascii(p, len))
        return true;
    const unsigned char *end = len ? p + len : p;
    while (p < end) {
        if (end - p >= 8 && (load(p, 8) & HIGH_BITS) == 0) {
            p += 8;
            continue;
        }
        if (*p < 0x80) {
            p++;
            continue;
        }
        unsigned char lo;
        unsigned char hi;
        int more = tail(*p++, &lo, &hi);
        if (more < 0 || end - p < more || *p < lo || *p > hi)
            return false;
        for (p++; --more > 0; p++)
            if ((*p & 0xC0) != 0x80)
                return false;
    }
    return true;
}

size_t pb_utf8_encode(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)((0xF0u << (4 - n)) | code);
    return n;
}
