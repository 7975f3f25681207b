#pragma once
/* JSON as people write it, made strict. Pure; any thread. */
#include <stddef.h>

/* json_relax - a copy in which strings between single quotes have double ones, keys without
 * quotes have them, control characters in strings are escaped, and the backslash of an escape
 * that there is not is gone: what protobuf's own reader takes besides JSON. Nothing is checked;
 * the result may be no JSON either.
 * ret_len  bytes of it
 * returns  the caller's (mem_free); NULL when there is no memory */
char *json_relax(const char *text, size_t len, size_t *ret_len);
