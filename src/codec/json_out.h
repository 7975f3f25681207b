#pragma once
/* Writes JSON text for answers of known form. Each function writes at `to`, where the caller has
 * made room, and returns the end of what it wrote. Formats as in the reference. Pure; any
 * thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf;

#define JSON_OUT_NUMBER_BYTES 32u /* room for any number and a comma */

/* json_out_string_bytes - room for any string of len bytes with its quotes. */
static inline size_t json_out_string_bytes(size_t len)
{
    return len * 6 + 2;
}

/* json_out_string - write a string in quotes. Bytes that are not UTF-8 are written unchanged. */
char *json_out_string(char *to, const char *s, size_t len);

/* json_out_put - append a C string in quotes to a text that makes its own room. */
void json_out_put(struct strbuf *sb, const char *s);

char *json_out_uint(char *to, uint64_t n);
char *json_out_int(char *to, int64_t n);
char *json_out_bool(char *to, bool b);

/* json_out_real - write the shortest text that reads back as the same double, always with a
 * point or an exponent; NaN, Infinity. */
char *json_out_real(char *to, double d);

/* json_out_floats, json_out_doubles - write n > 0 numbers separated by commas; floats are
 * converted to double. Room: n * JSON_OUT_NUMBER_BYTES. The values need not be aligned. */
char *json_out_floats(char *to, const void *values, size_t n);
char *json_out_doubles(char *to, const void *values, size_t n);

/* json_out_text - copy len bytes. */
char *json_out_text(char *to, const char *text, size_t len);

/* JSON_OUT_LITERAL - copy a string literal. */
#define JSON_OUT_LITERAL(to, literal) json_out_text((to), "" literal, sizeof(literal) - 1)
