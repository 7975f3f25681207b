/* codec/base64. */
#include "codec/base64.h"

#include "support/unit.h"

#include <string.h>

static void decodes(const char *text, const char *expected, size_t len)
{
    char out[64];
    size_t got = 0;
    assert_true(strlen(text) < 60 && base64_room(strlen(text)) <= sizeof(out));
    assert_true(base64_decode(text, strlen(text), BASE64_LINES, out, &got));
    assert_int_equal(got, len);
    assert_memory_equal(out, expected, len);
    if (strchr(text, '\n'))
        return;
    assert_int_equal(base64_bytes(text, strlen(text)), len);
    char again[64];
    *base64_encode(again, expected, len) = '\0';
    if (strlen(text) % 4 == 0 && *text != '-')
        assert_string_equal(again, text);
}

static void refuses(const char *text)
{
    char out[64];
    size_t got;
    assert_false(base64_decode(text, strlen(text), BASE64_LINES, out, &got));
}

/* The vectors of RFC 4648. */
static void reads_the_standard_vectors(void **state)
{
    (void)state;
    decodes("", "", 0);
    decodes("Zg==", "f", 1);
    decodes("Zm8=", "fo", 2);
    decodes("Zm9v", "foo", 3);
    decodes("Zm9vYg==", "foob", 4);
    decodes("Zm9vYmE=", "fooba", 5);
    decodes("Zm9vYmFy", "foobar", 6);
    decodes("Zm9vYg", "foob", 4);
    decodes("AZaz09+/", "\x01\x96\xb3\xd3\xdf\xbf", 6); /* the ends of each range */
    decodes("Zm9v\r\nYmFy\n", "foobar", 6);
    decodes("+/+/AA==", "\xfb\xff\xbf\x00", 4);
    decodes("-_-_AA==", "\xfb\xff\xbf\x00", 4);
}

/* RX-38. */
static void refuses_what_is_none(void **state)
{
    (void)state;
    refuses("Z");
    refuses("Zm9vY");
    refuses("Zm8==");
    refuses("Zg=");
    refuses("Zg=a");
    refuses("=");
    refuses("Zm 9v");
    size_t got;
    char out[64];
    assert_false(base64_decode("Zm9v\nYmFy", 9, BASE64_ONE_LINE, out, &got));
    refuses("Zm9v\xff");
}

UNIT_MAIN(UNIT(reads_the_standard_vectors), UNIT(refuses_what_is_none))
