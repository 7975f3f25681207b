#pragma once
/* The protobuf text format: bytes to a message, over its descriptor. Pure; any thread. */
#include "base/err.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Messages inside messages, at most. */
#define PB_TEXT_MAX_DEPTH 64u

/* pb_text_read - read a message.
 * type       what to read
 * text       len bytes, need not end in NUL
 * file       how error messages name the text
 * max_bytes  the most memory the message may take
 * ret        the message, the caller's (pb_field_free_message)
 * returns    NULL, or INVALID_ARG "file:line:column: path: expected ..., found ..."; UNAVAILABLE
 *            when the memory is used up
 *
 * Accepted is what the C++ parser of protobuf accepts, but for strings that are not UTF-8 or hold a
 * zero byte, and for nesting over PB_TEXT_MAX_DEPTH. A singular field may be given again only while
 * it holds its default; of two map entries with one key the later stays.
 * source     the protobuf text format language specification */
struct err *pb_text_read(const ProtobufCMessageDescriptor *type, const char *text, size_t len,
                         const char *file, size_t max_bytes, ProtobufCMessage **ret);
