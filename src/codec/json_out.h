#pragma once
/* JSON text by hand, for answers of known shape: each function writes at `to`, where the caller
 * has made room, and returns the end of what it wrote. Formats as the reference's. Pure; any
 * thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_OUT_NUMBER_BYTES 32u /* room that any number takes, and a comma */

/* json_out_string_bytes - room for a string of len bytes with its quotes, whatever it holds. */
static inline size_t json_out_string_bytes(size_t len)
{
    return len * 6 + 2;
}

/* json_out_string - a string in quotes. Bytes that are not UTF-8 are written as they are. */
char *json_out_string(char *to, const char *s, size_t len);

char *json_out_uint(char *to, uint64_t n);
char *json_out_int(char *to, int64_t n);
char *json_out_bool(char *to, bool b);

/* json_out_real - shortest text that reads back as the same double, always with a point or an
 * exponent; NaN, Infinity. */
char *json_out_real(char *to, double d);

/* json_out_floats, json_out_doubles - n > 0 numbers with commas between them; floats as the
 * doubles they are. Room: n * JSON_OUT_NUMBER_BYTES. The values need not be aligned. */
char *json_out_floats(char *to, const void *values, size_t n);
char *json_out_doubles(char *to, const void *values, size_t n);

/* json_out_text - a copy of len bytes. */
char *json_out_text(char *to, const char *text, size_t len);

/* JSON_OUT_LITERAL - a string literal as it stands. */
#define JSON_OUT_LITERAL(to, literal) json_out_text((to), "" literal, sizeof(literal) - 1)
