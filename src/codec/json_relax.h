#pragma once
/* Converts relaxed JSON, as people write it, to strict JSON. Pure; any thread. */
#include <stddef.h>

/* json_relax - make a copy in which strings in single quotes get double quotes, keys without
 * quotes get quotes, control characters in strings are escaped, and the backslash of an invalid
 * escape is removed. This is what protobuf's own reader accepts in addition to JSON. Nothing is
 * checked; the result may still not be JSON.
 * ret_len  bytes of the copy
 * returns  owned by the caller (mem_free); NULL if there is no memory */
char *json_relax(const char *text, size_t len, size_t *ret_len);
