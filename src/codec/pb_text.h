#pragma once
/* Reads a message in the protobuf text format, through its descriptor. Pure; any thread. */
#include "base/err.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* The deepest nesting of messages. */
#define PB_TEXT_MAX_DEPTH 64u

/* pb_text_read - read a message.
 * type       what to read
 * text       len bytes, need not end in NUL
 * file       the text's name in error messages
 * max_bytes  the most memory of the message
 * ret        the message, owned by the caller (pb_field_free_message)
 * returns    NULL, or INVALID_ARG "file:line:column: path: expected ..., found ..."; UNAVAILABLE
 *            if the memory is used up
 *
 * Accepts what protobuf's C++ parser accepts, except strings that are not UTF-8 or contain a
 * zero byte, and nesting deeper than PB_TEXT_MAX_DEPTH. A singular field may be repeated only
 * while it has its default value. If two map entries have one key, the later one counts.
 * source     the protobuf text format language specification */
struct err *pb_text_read(const ProtobufCMessageDescriptor *type, const char *text, size_t len,
                         const char *file, size_t max_bytes, ProtobufCMessage **ret);
