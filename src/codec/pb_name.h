#pragma once
/* Names of fields and enum values in protobuf-c descriptors: exact look-up, and the nearest one for
 * messages about typing slips. Pure; any thread. A name is len bytes and need not end in NUL. */
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

/* pb_name_field - the field of a name as the schema writes it; NULL when there is none.
 * pb_name_json_field - the same, and its lowerCamelCase form too. */
const ProtobufCFieldDescriptor *pb_name_field(const ProtobufCMessageDescriptor *type,
                                              const char *name, size_t len);
const ProtobufCFieldDescriptor *pb_name_json_field(const ProtobufCMessageDescriptor *type,
                                                   const char *name, size_t len);

/* pb_name_value - the value of an enum's name; NULL when there is none.
 * pb_name_json_value - the same whatever the case of its letters. */
const ProtobufCEnumValue *pb_name_value(const ProtobufCEnumDescriptor *type, const char *name,
                                        size_t len);
const ProtobufCEnumValue *pb_name_json_value(const ProtobufCEnumDescriptor *type, const char *name,
                                             size_t len);

/* pb_name_nearest_field, pb_name_nearest_value - the name that is most like a misspelt one; NULL
 * when none is near. */
const char *pb_name_nearest_field(const ProtobufCMessageDescriptor *type, const char *name,
                                  size_t len);
const char *pb_name_nearest_value(const ProtobufCEnumDescriptor *type, const char *name,
                                  size_t len);
