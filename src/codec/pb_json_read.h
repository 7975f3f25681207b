#pragma once
/* Reads a protobuf-c message from JSON, through its descriptor. Pure; any thread. */
#include "base/err.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* The deepest nesting of objects. */
#define PB_JSON_READ_MAX_DEPTH 64u

/* pb_json_read_message - read a message.
 * type       what to read
 * text       len bytes, need not end in NUL
 * what       the text's name in error messages, such as "config"
 * max_bytes  the most memory of the message. While reading, the JSON tree takes up to 13 times
 *            the size of the text more; relaxed JSON takes another two times
 * ret        the message, owned by the caller (pb_field_free_message)
 * returns    NULL, or INVALID_ARG "what: path: expected ..., found ..." or, if it is not JSON,
 *            "what:line:column: ..."; UNAVAILABLE if the memory is used up
 *
 * Accepted: names of the schema or in lowerCamelCase; integers as numbers or strings; enums by
 * name or number; maps as objects; bytes in base64, either alphabet, with or without padding.
 * null leaves a singular field unchanged and is skipped in a list. Unknown fields are errors.
 * Also accepted: a single value for a list, "true" and "false" as strings, keys without quotes,
 * single quotes, a comma before a closing bracket, and control characters in strings.
 * source     the JSON mapping of proto3 */
struct err *pb_json_read_message(const ProtobufCMessageDescriptor *type, const char *text,
                                 size_t len, const char *what, size_t max_bytes,
                                 ProtobufCMessage **ret);
