#pragma once
/* Base64 of RFC 4648, the standard alphabet and the one for URLs. Pure. */
#include <stdbool.h>
#include <stddef.h>

/* base64_bytes - how many bytes len characters decode to, if they are base64 in one line. */
static inline size_t base64_bytes(const char *text, size_t len)
{
    for (int i = 0; i < 2 && len && text[len - 1] == '='; i++)
        len--;
    return len / 4 * 3 + len % 4 * 3 / 4;
}

/* base64_room - the most bytes that len characters decode to. */
static inline size_t base64_room(size_t len)
{
    return len / 4 * 3 + 3;
}

/* Whether the text may contain line breaks. */
enum base64_lines {
    BASE64_ONE_LINE,
    BASE64_LINES, /* line breaks are skipped */
};

/* base64_decode - decode into `to`, which has base64_room(len) bytes. Padding at the end may be
 * missing.
 * returns  false for any other character or an incomplete group; `to` is undefined then */
bool base64_decode(const char *text, size_t len, enum base64_lines lines, void *to,
                   size_t *ret_len);

/* base64_encode - write base64 with padding: (len + 2) / 3 * 4 characters. Returns the end. */
char *base64_encode(char *to, const void *data, size_t len);
