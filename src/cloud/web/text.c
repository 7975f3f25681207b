#include "cloud/web/text.h"

void text_base64(struct strbuf *sb, const void *bytes, size_t len, bool for_url)
{
    static const char common[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const unsigned char *b = bytes;
    for (size_t i = 0; i < len; i += 3) {
        unsigned left = len - i < 3 ? (unsigned)(len - i) : 3;
        unsigned group = (unsigned)b[i] << 16 | (left > 1 ? (unsigned)b[i + 1] << 8 : 0) |
                         (left > 2 ? b[i + 2] : 0);
        for (unsigned k = 0; k < 4; k++) {
            unsigned at = group >> (18 - 6 * k) & 63;
            if (k <= left)
                strbuf_putc(sb, at < 62    ? common[at]
                                : at == 62 ? (for_url ? '-' : '+')
                                           : (for_url ? '_' : '/'));
            else if (!for_url)
                strbuf_putc(sb, '=');
        }
    }
}

void text_hex(struct strbuf *sb, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < len; i++)
        strbuf_printf(sb, "%02x", b[i]);
}
