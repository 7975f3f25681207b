#pragma once
/* Base64 of RFC 4648, the standard alphabet and the one for URLs. Pure. */
#include <stdbool.h>
#include <stddef.h>

/* base64_room - the most bytes that len characters stand for. */
static inline size_t base64_room(size_t len)
{
    return len / 4 * 3 + 3;
}

/* Whether the text may be broken into lines. */
enum base64_lines {
    BASE64_ONE_LINE,
    BASE64_LINES, /* line ends are passed over */
};

/* base64_decode - into `to`, which has base64_room(len) bytes. Padding at the end may be left out.
 * returns  false for any other character, or a cut-off group; then `to` holds nothing of use */
bool base64_decode(const char *text, size_t len, enum base64_lines lines, void *to,
                   size_t *ret_len);
