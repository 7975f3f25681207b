#pragma once
/* Describes the JSON that pb_json.h prints (style: plain_int64) as JSON Schema, from descriptors.
 * Pure; any thread. */
#include "base/strbuf.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* pb_schema_put - append `"Name":{schema}` for messages and all that they hold, separated by
 * commas. Names are those of the messages without their package.
 * prefix  of references to a schema, e.g. "#/components/schemas/"
 * roots   `count` of them */
void pb_schema_put(const ProtobufCMessageDescriptor *const *roots, size_t count, const char *prefix,
                   struct strbuf *out);
