#pragma once
/* Prints a protobuf-c message as JSON, through its descriptor. Pure; any thread. */
#include "base/strbuf.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* How to print. All false is the canonical form of proto3, but with the schema's names. */
struct pb_json_style {
    bool plain_int64; /* 64-bit integers as numbers; else as strings */
    bool defaults;    /* print default values too, but not unset messages or oneof members */
};

/* pb_json_print - append the message as a JSON object without blanks, fields ordered by number.
 * Field names are the schema's, enums are printed as names, bytes in base64, numbers with as few
 * digits as read back the same; NaN and infinities are strings. Strings must be UTF-8, which all
 * readers here check.
 * source  the JSON mapping of proto3 */
void pb_json_print(const ProtobufCMessage *msg, struct pb_json_style style, struct strbuf *out);

/* pb_json_print_string - append a string in quotes, with escapes. */
void pb_json_print_string(const char *s, size_t len, struct strbuf *out);
