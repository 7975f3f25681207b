#pragma once
/* Fields of protobuf-c messages, reached through their descriptors: what the text and JSON readers
 * and writers share. Messages made here lie on the heap of base/mem, so that pb_field_free_message
 * (and protobuf_c_message_free_unpacked with the default allocator) frees all of one. */
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that one reader may still allocate for the message it builds. */
struct pb_budget {
    size_t left;
};

/* pb_field_new_message - an empty message of a type; NULL when the budget is used up. */
ProtobufCMessage *pb_field_new_message(const ProtobufCMessageDescriptor *type,
                                       struct pb_budget *budget);
void pb_field_free_message(ProtobufCMessage *msg);

/* pb_field_copy_message - an independent copy. Never NULL: its size is that of what we hold
 * already. */
ProtobufCMessage *pb_field_copy_message(const ProtobufCMessage *msg);

/* pb_field_is_map - the field of `parent` is a map: a repeated message with key = 1 and value = 2,
 * named after the field. */
bool pb_field_is_map(const ProtobufCMessageDescriptor *parent,
                     const ProtobufCFieldDescriptor *field);

/* pb_field_is_set - a singular field holds something: a chosen oneof member, a message, or a value
 * other than the default. A repeated field: it has an element. */
bool pb_field_is_set(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field);

/* pb_field_rival - the other member of the field's oneof that is set; NULL when there is none. */
const ProtobufCFieldDescriptor *pb_field_rival(const ProtobufCMessage *msg,
                                               const ProtobufCFieldDescriptor *field);

/* pb_field_count - elements of a repeated field; pb_field_size - bytes of one element in memory. */
size_t pb_field_count(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field);
size_t pb_field_size(const ProtobufCFieldDescriptor *field);

/* pb_field_at - element `i` of a repeated field, or the value of a singular one (i ignored). */
const void *pb_field_at(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                        size_t i);

/* pb_field_add - where the next value goes: a new last element of a repeated field, cleared, or the
 * place of a singular field, which counts as set from now on. NULL when the budget or the memory is
 * used up. What a singular string or bytes field held before is replaced by pb_field_put_bytes.
 * Only for messages that pb_field_new_message made: the arrays of an unpacked or copied one, or of
 * a settled map, have no room. */
void *pb_field_add(ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                   struct pb_budget *budget);

/* pb_field_put_integer - store an integer given as sign and magnitude in an integer, enum or bool
 * place. returns false when the type does not hold it */
bool pb_field_put_integer(void *place, ProtobufCType type, bool negative, uint64_t magnitude);

/* pb_field_integer_words - what an integer type holds, for messages. */
const char *pb_field_integer_words(ProtobufCType type);

/* pb_field_put_double - store into a float or double place; over its range = infinite. */
void pb_field_put_double(void *place, ProtobufCType type, double value);

/* pb_field_put_bytes - store a copy in a string or bytes place. A string must have no NUL inside:
 * the caller checks. returns false when the budget or the memory is used up */
bool pb_field_put_bytes(void *place, const ProtobufCFieldDescriptor *field, const char *data,
                        size_t len, struct pb_budget *budget);

/* pb_field_settle_map - keep the last entry of every key of a map field, in the order of first use,
 * and give an entry whose message was left out an empty one. */
void pb_field_settle_map(ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field);

/* pb_field_set_string - replace what a string member of a generated struct holds by a copy. */
void pb_field_set_string(char **member, const char *value);
