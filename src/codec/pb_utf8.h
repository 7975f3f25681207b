#pragma once
/* UTF-8: protobuf strings must be UTF-8, but protobuf-c does not check them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pb_utf8_valid - true if the bytes are well formed (RFC 3629): no overlong forms, no
 * surrogates, nothing above U+10FFFF. Any thread. */
bool pb_utf8_valid(const void *data, size_t len);

/* pb_utf8_encode - write a code point up to U+10FFFF (also surrogates) into 4 bytes; returns how
 * many were used. */
size_t pb_utf8_encode(uint32_t code, char out[4]);
