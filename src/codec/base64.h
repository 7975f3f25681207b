#pragma once
/* Base64 of RFC 4648, the standard alphabet and the one for URLs. Pure. */
#include <stdbool.h>
#include <stddef.h>

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
