#pragma once
/* Access to the fields of protobuf-c messages through their descriptors, shared by the text and
 * JSON readers and writers. Messages made here lie on the heap of base/mem, so that
 * pb_field_free_message (and protobuf_c_message_free_unpacked with the default allocator) frees
 * a whole message. */
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much memory a reader may still allocate for its message. */
struct pb_budget {
    size_t left;
};

/* pb_field_new_message - make an empty message of a type; NULL if the budget is used up. */
ProtobufCMessage *pb_field_new_message(const ProtobufCMessageDescriptor *type,
                                       struct pb_budget *budget);
void pb_field_free_message(ProtobufCMessage *msg);

/* pb_field_copy_message - an independent copy. Never NULL: the server already holds a message of
 * that size. */
ProtobufCMessage *pb_field_copy_message(const ProtobufCMessage *msg);

/* pb_field_is_map - true if the field is a map: a repeated message with key = 1 and value = 2,
 * named after the field. */
bool pb_field_is_map(const ProtobufCMessageDescriptor *parent,
                     const ProtobufCFieldDescriptor *field);

/* pb_field_is_set - true if a singular field has a value: a chosen oneof member, a message, or a
 * value other than the default; or if a repeated field has an element. */
bool pb_field_is_set(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field);

/* pb_field_rival - the other member of the field's oneof that is set; NULL if there is none. */
const ProtobufCFieldDescriptor *pb_field_rival(const ProtobufCMessage *msg,
                                               const ProtobufCFieldDescriptor *field);

/* pb_field_count - number of elements of a repeated field.
 * pb_field_size - bytes of one element in memory. */
size_t pb_field_count(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field);
size_t pb_field_size(const ProtobufCFieldDescriptor *field);

/* pb_field_at - element `i` of a repeated field, or the value of a singular one (i is ignored). */
const void *pb_field_at(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                        size_t i);

/* pb_field_add - the place for the next value: a new cleared last element of a repeated field,
 * or the place of a singular field, which is set from now on. NULL if the budget or the memory
 * is used up. pb_field_put_bytes replaces the earlier value of a singular string or bytes field.
 * Only for messages made by pb_field_new_message: the arrays of an unpacked or copied message,
 * or of a settled map, have no room. */
void *pb_field_add(ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                   struct pb_budget *budget);

/* pb_field_put_integer - store an integer, given as sign and magnitude, in an integer, enum or
 * bool place. Returns false if it is out of range. */
bool pb_field_put_integer(void *place, ProtobufCType type, bool negative, uint64_t magnitude);

/* pb_field_integer_words - the range of an integer type, for messages. */
const char *pb_field_integer_words(ProtobufCType type);

/* pb_field_put_double - store into a float or double place; a value out of range becomes
 * infinite. */
void pb_field_put_double(void *place, ProtobufCType type, double value);

/* pb_field_put_bytes - store a copy in a string or bytes place. A string must not contain NUL:
 * the caller checks. Returns false if the budget or the memory is used up. */
bool pb_field_put_bytes(void *place, const ProtobufCFieldDescriptor *field, const char *data,
                        size_t len, struct pb_budget *budget);

/* pb_field_settle_map - keep only the last entry of each key of a map field, in the order of
 * first use, and give an entry without a message an empty one. */
void pb_field_settle_map(ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field);

/* pb_field_set_string - replace a string member of a generated struct by a copy of value. */
void pb_field_set_string(char **member, const char *value);
