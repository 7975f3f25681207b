#pragma once
/* Finds names of fields and enum values in protobuf-c descriptors: exact lookup, and the most
 * similar name for messages about typing errors. Pure; any thread. A name is len bytes and need
 * not end in NUL. */
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

/* pb_name_field - the field with a name of the schema; NULL if there is none.
 * pb_name_json_field - the same; the lowerCamelCase form is accepted too. */
const ProtobufCFieldDescriptor *pb_name_field(const ProtobufCMessageDescriptor *type,
                                              const char *name, size_t len);
const ProtobufCFieldDescriptor *pb_name_json_field(const ProtobufCMessageDescriptor *type,
                                                   const char *name, size_t len);

/* pb_name_value - the enum value with a name; NULL if there is none.
 * pb_name_json_value - the same, ignoring case. */
const ProtobufCEnumValue *pb_name_value(const ProtobufCEnumDescriptor *type, const char *name,
                                        size_t len);
const ProtobufCEnumValue *pb_name_json_value(const ProtobufCEnumDescriptor *type, const char *name,
                                             size_t len);

/* pb_name_nearest_field, pb_name_nearest_value - the name most similar to a misspelt one; NULL
 * if none is similar. */
const char *pb_name_nearest_field(const ProtobufCMessageDescriptor *type, const char *name,
                                  size_t len);
const char *pb_name_nearest_value(const ProtobufCEnumDescriptor *type, const char *name,
                                  size_t len);
