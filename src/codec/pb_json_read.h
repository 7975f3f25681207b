#pragma once
/* JSON text to a protobuf-c message, over its descriptor. Pure; any thread. */
#include "base/err.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Objects inside objects, at most. */
#define PB_JSON_READ_MAX_DEPTH 64u

/* pb_json_read_message - read a message.
 * type       what to read
 * text       len bytes, need not end in NUL
 * what       how error messages name the text, e.g. "config"
 * max_bytes  the most memory the message may take; the JSON tree takes up to 13 times the text,
 *            and a text that is no strict JSON twice, besides, while reading
 * ret        the message, the caller's (pb_field_free_message)
 * returns    NULL, or INVALID_ARG "what: path: expected ..., found ..." or "what:line:column:
 *            ..." where it is no JSON; UNAVAILABLE when the memory is used up
 *
 * Names as in the schema or in lowerCamelCase; integers as numbers or strings; enums by name or
 * number; maps as objects; bytes in base64, either alphabet, padded or not. A null leaves a
 * singular field alone, and is nothing in a list. Unknown fields are errors. Taken are also a
 * value where a list of one is meant, "true" and "false" as strings, keys without quotes, single
 * quotes, a comma before a closing bracket, and control characters in strings.
 * source     the JSON mapping of proto3 */
struct err *pb_json_read_message(const ProtobufCMessageDescriptor *type, const char *text,
                                 size_t len, const char *what, size_t max_bytes,
                                 ProtobufCMessage **ret);
