#pragma once
/* Base64 of RFC 4648, the standard alphabet. Pure. */
#include <stdbool.h>
#include <stddef.h>

/* base64_room - the most bytes that len characters stand for. */
static inline size_t base64_room(size_t len)
{
    return len / 4 * 3 + 3;
}

/* base64_decode - into `to`, which has base64_room(len) bytes. Line ends are passed over, padding at the end may be left out.
 * returns  false for any other character, or a cut-off group; then `to` holds nothing of use */
bool base64_decode(const char *text, size_t len, void *to, size_t *ret_len);
