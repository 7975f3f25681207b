/* Base64: the decoder writes nothing beyond its buffer, and encoding the decoded bytes again
 * gives the same text, apart from line ends and padding. */
#include "base/check.h"
#include "codec/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Compare a text without padding with the n bytes that it encodes. Unused bits of the last
 * character may have any value. */
static void compare(const char *text, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < (n * 8) / 6; i++, text++) {
        while (*text == '\r' || *text == '\n')
            text++;
        size_t bit = i * 6;
        unsigned two = (unsigned)bytes[bit / 8] << 8 | (bit / 8 + 1 < n ? bytes[bit / 8 + 1] : 0u);
        char c = *text == '-' ? '+' : *text == '_' ? '/' : *text; /* the alphabet for URLs */
        CHECK(c == alphabet[two >> (10 - bit % 8) & 63]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t room = base64_room(size);
    uint8_t *to = malloc(room + 1);
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    to[room] = 0xA5;
    size_t n = 0;
    bool good = base64_decode(text, size, BASE64_LINES, to, &n);
    CHECK(to[room] == 0xA5);
    if (good) {
        CHECK(n <= room);
        compare(text, to, n);
    }
    free(text);
    free(to);
    return 0;
}
