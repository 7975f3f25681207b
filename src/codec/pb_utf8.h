#pragma once
/* UTF-8, which protobuf strings must be and protobuf-c does not look at. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pb_utf8_valid - well-formed as RFC 3629 has it: no overlong forms, no surrogates, nothing over
 * U+10FFFF. Any thread. */
bool pb_utf8_valid(const void *data, size_t len);

/* pb_utf8_encode - write a code point up to U+10FFFF, surrogates too, into 4 bytes; returns how
 * many were used. */
size_t pb_utf8_encode(uint32_t code, char out[4]);
