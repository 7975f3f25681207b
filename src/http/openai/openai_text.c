#include "http/openai/openai_text.h"

#include "base/strbuf.h"
#include "codec/json_out.h"
#include "codec/pb_utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Room is made for so many bytes of text at a time. */
#define TEXT_PIECE ((size_t)8192)

/* How long the character is that a byte begins; 1 for bytes that begin none. */
static size_t utf8_bytes_from(char first)
{
    uint8_t c = (uint8_t)first;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef)
        return 3;
    return c >= 0xf0 && c <= 0xf4 ? 4 : 1;
}

size_t openai_text_whole(const char *text, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const char *at = text + len - back;
        if ((*at & 0xc0) == 0x80)
            continue;
        return utf8_bytes_from(*at) > back ? len - back : len;
    }
    return len;
}

static void put_piece(struct strbuf *to, const char *text, size_t len)
{
    char *at = strbuf_reserve(to, json_out_string_bytes(len));
    char *end = json_out_string(at, text, len);
    size_t inside = (size_t)(end - at) - 2; /* without the quotes */
    memmove(at, at + 1, inside);
    at[inside] = 0;
    to->len += inside;
}

/* How much of the front is UTF-8. */
static size_t valid_bytes(const char *text, size_t len)
{
    size_t at = 0;
    while (at < len) {
        size_t n = utf8_bytes_from(text[at]);
        if (n > len - at || !pb_utf8_valid(text + at, n))
            break;
        at += n;
    }
    return at;
}

void openai_text_put(struct strbuf *to, const char *text, size_t len)
{
    strbuf_putc(to, '"');
    while (len) {
        size_t piece = len < TEXT_PIECE ? len : openai_text_whole(text, TEXT_PIECE);
        bool valid = pb_utf8_valid(text, piece);
        if (!valid)
            piece = valid_bytes(text, piece);
        put_piece(to, text, piece);
        text += piece;
        len -= piece;
        if (valid)
            continue;
        strbuf_puts(to, "\xef\xbf\xbd");
        text++;
        len--;
    }
    strbuf_putc(to, '"');
}
