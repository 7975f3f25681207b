#pragma once
/* A protobuf-c message as JSON text, over its descriptor. Pure; any thread. */
#include "base/strbuf.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* How to print. All false is the canonical form of proto3, with the names of the schema. */
struct pb_json_style {
    bool plain_int64; /* 64-bit integers as numbers; else as strings */
    bool defaults;    /* also what holds its default, but no unset message or oneof member */
};

/* pb_json_print - append the message as one JSON object without blanks, fields by their numbers.
 * Names are the schema's, enums by name, bytes in base64, numbers as short as they read back the
 * same; NaN and infinities are strings. Strings must be UTF-8, as every reader of ours makes sure.
 * source  the JSON mapping of proto3 */
void pb_json_print(const ProtobufCMessage *msg, struct pb_json_style style, struct strbuf *out);

/* pb_json_print_string - append a string in quotes, escaped. */
void pb_json_print_string(const char *s, size_t len, struct strbuf *out);
