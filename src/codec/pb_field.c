#include "codec/pb_field.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define MEMBER(type, msg, off)       (*(type *)(void *)((char *)(msg) + (off)))
#define MEMBER_CONST(type, msg, off) (*(const type *)(const void *)((const char *)(msg) + (off)))

static void *pb_field_spend(struct pb_budget *budget, size_t n)
{
    if (n > budget->left)
        return NULL;
    void *p = mem_try_alloc(n, 8);
    if (p)
        budget->left -= n;
    return p;
}

ProtobufCMessage *pb_field_new_message(const ProtobufCMessageDescriptor *type,
                                       struct pb_budget *budget)
{
    ProtobufCMessage *msg = pb_field_spend(budget, type->sizeof_message);
    if (msg)
        protobuf_c_message_init(type, msg);
    return msg;
}

void pb_field_free_message(ProtobufCMessage *msg)
{
    protobuf_c_message_free_unpacked(msg, NULL);
}

ProtobufCMessage *pb_field_copy_message(const ProtobufCMessage *msg)
{
    size_t n = protobuf_c_message_get_packed_size(msg);
    uint8_t *bytes = mem_alloc(n);
    protobuf_c_message_pack(msg, bytes);
    ProtobufCMessage *copy = protobuf_c_message_unpack(msg->descriptor, NULL, n, bytes);
    mem_free(bytes);
    CHECK(copy);
    return copy;
}

bool pb_field_is_map(const ProtobufCMessageDescriptor *parent,
                     const ProtobufCFieldDescriptor *field)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const ProtobufCMessageDescriptor *entry = field->descriptor;
    if (entry->n_fields != 2 || entry->fields[0].id != 1 || entry->fields[1].id != 2 ||
        strcmp(entry->fields[0].name, "key") != 0 || strcmp(entry->fields[1].name, "value") != 0)
        return false;
    /* A map named cc_model_filenames of message M has the entry type M.CcModelFilenamesEntry. */
    size_t scope = strlen(parent->name);
    if (strncmp(entry->name, parent->name, scope) != 0 || entry->name[scope] != '.')
        return false;
    const char *e = entry->name + scope + 1;
    bool upper = true;
    for (const char *f = field->name; *f; f++) {
        if (*f == '_') {
            upper = true;
            continue;
        }
        char want = upper && *f >= 'a' && *f <= 'z' ? (char)(*f - 'a' + 'A') : *f;
        if (*e++ != want)
            return false;
        upper = false;
    }
    return strcmp(e, "Entry") == 0;
}

size_t pb_field_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(int);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    }
    check_failed(__FILE__, __LINE__, "unknown protobuf type");
}

static bool value_is_zero(const void *at, const ProtobufCFieldDescriptor *field)
{
    static const char zero[8];
    switch ((int)field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *s = *(const char *const *)at;
        return !s || !*s;
    }
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)at)->len == 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(const void *const *)at == NULL;
    default:
        return memcmp(at, zero, pb_field_size(field)) == 0;
    }
}

bool pb_field_is_set(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return MEMBER_CONST(size_t, msg, field->quantifier_offset) > 0;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return MEMBER_CONST(uint32_t, msg, field->quantifier_offset) == field->id;
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->type != PROTOBUF_C_TYPE_MESSAGE &&
        field->type != PROTOBUF_C_TYPE_STRING)
        return MEMBER_CONST(protobuf_c_boolean, msg, field->quantifier_offset) != 0;
    return !value_is_zero((const char *)msg + field->offset, field);
}

const ProtobufCFieldDescriptor *pb_field_rival(const ProtobufCMessage *msg,
                                               const ProtobufCFieldDescriptor *field)
{
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return NULL;
    uint32_t chosen = MEMBER_CONST(uint32_t, msg, field->quantifier_offset);
    if (chosen == 0 || chosen == field->id)
        return NULL;
    return protobuf_c_message_descriptor_get_field(msg->descriptor, chosen);
}

size_t pb_field_count(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field)
{
    return MEMBER_CONST(size_t, msg, field->quantifier_offset);
}

const void *pb_field_at(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                        size_t i)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        return (const char *)msg + field->offset;
    return MEMBER_CONST(char *, msg, field->offset) + i * pb_field_size(field);
}

/* Arrays have room for a power of two of elements: they are full exactly when the count is 0 or
 * a power of two. */
static void *pb_field_grow(ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                           struct pb_budget *budget)
{
    size_t *count = &MEMBER(size_t, msg, field->quantifier_offset);
    char **array = &MEMBER(char *, msg, field->offset);
    size_t size = pb_field_size(field);
    if ((*count & (*count - 1)) == 0) {
        char *larger = pb_field_spend(budget, mem_array_bytes(*count ? *count * 2 : 1, size));
        if (!larger)
            return NULL;
        if (*count)
            memcpy(larger, *array, *count * size);
        mem_free(*array);
        *array = larger;
    }
    char *place = *array + *count * size;
    memset(place, 0, size);
    ++*count;
    return place;
}

void *pb_field_add(ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field,
                   struct pb_budget *budget)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return pb_field_grow(msg, field, budget);
    char *place = (char *)msg + field->offset;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t *chosen = &MEMBER(uint32_t, msg, field->quantifier_offset);
        if (*chosen == 0)
            memset(place, 0, pb_field_size(field));
        *chosen = field->id;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL &&
               field->type != PROTOBUF_C_TYPE_MESSAGE && field->type != PROTOBUF_C_TYPE_STRING) {
        MEMBER(protobuf_c_boolean, msg, field->quantifier_offset) = 1;
    }
    return place;
}

static bool put_int32(void *place, bool negative, uint64_t magnitude)
{
    if (magnitude > (uint64_t)INT32_MAX + (negative ? 1 : 0))
        return false;
    int64_t v = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    *(int32_t *)place = (int32_t)v;
    return true;
}

static bool put_int64(void *place, bool negative, uint64_t magnitude)
{
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    uint64_t v = negative ? 0 - magnitude : magnitude;
    memcpy(place, &v, sizeof(v));
    return true;
}

bool pb_field_put_integer(void *place, ProtobufCType type, bool negative, uint64_t magnitude)
{
    switch ((int)type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_ENUM:
        return put_int32(place, negative, magnitude);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return put_int64(place, negative, magnitude);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        if (magnitude > UINT32_MAX || (negative && magnitude))
            return false;
        *(uint32_t *)place = (uint32_t)magnitude;
        return true;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        if (negative && magnitude)
            return false;
        *(uint64_t *)place = magnitude;
        return true;
    case PROTOBUF_C_TYPE_BOOL:
        if (magnitude > 1 || (negative && magnitude))
            return false;
        *(protobuf_c_boolean *)place = magnitude != 0;
        return true;
    default:
        return false;
    }
}

const char *pb_field_integer_words(ProtobufCType type)
{
    switch ((int)type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return "an integer from 0 to 4294967295";
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return "an integer from 0 to 18446744073709551615";
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return "an integer from -9223372036854775808 to 9223372036854775807";
    default:
        return "an integer from -2147483648 to 2147483647";
    }
}

void pb_field_put_double(void *place, ProtobufCType type, double value)
{
    if (type == PROTOBUF_C_TYPE_FLOAT) {
        /* Converting a value that no float can hold would be undefined, so the range is checked. */
        *(float *)place = value > 3.4028235677973366e38    ? (float)__builtin_inff()
                          : value < -3.4028235677973366e38 ? -(float)__builtin_inff()
                                                           : (float)value;
    } else {
        *(double *)place = value;
    }
}

bool pb_field_put_bytes(void *place, const ProtobufCFieldDescriptor *field, const char *data,
                        size_t len, struct pb_budget *budget)
{
    char *copy = pb_field_spend(budget, len + 1);
    if (!copy)
        return false;
    if (len)
        memcpy(copy, data, len);
    copy[len] = '\0';
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        char *old = *(char **)place;
        if (old != field->default_value)
            mem_free(old);
        *(char **)place = copy;
    } else {
        ProtobufCBinaryData *b = place;
        mem_free(b->data);
        b->data = (uint8_t *)copy;
        b->len = len;
    }
    return true;
}

struct entry {
    ProtobufCMessage *msg;
    const void *key;
    const ProtobufCFieldDescriptor *field;
    size_t order;
    size_t first; /* order of the first entry with this key */
};

static int compare_keys(const struct entry *a, const struct entry *b)
{
    if (a->field->type == PROTOBUF_C_TYPE_STRING)
        return strcmp(*(const char *const *)a->key, *(const char *const *)b->key);
    return memcmp(a->key, b->key, pb_field_size(a->field));
}

static int by_key(const void *x, const void *y)
{
    const struct entry *a = x;
    const struct entry *b = y;
    int c = compare_keys(a, b);
    if (c)
        return c;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int by_first_use(const void *x, const void *y)
{
    const struct entry *a = x;
    const struct entry *b = y;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* need_value - give an entry without a value an empty message, so that readers of maps need not
 * check. */
static void need_value(ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *value = &entry->descriptor->fields[1];
    if (value->type != PROTOBUF_C_TYPE_MESSAGE || pb_field_is_set(entry, value))
        return;
    const ProtobufCMessageDescriptor *type = value->descriptor;
    ProtobufCMessage *empty = mem_alloc(type->sizeof_message);
    protobuf_c_message_init(type, empty);
    MEMBER(ProtobufCMessage *, entry, value->offset) = empty;
}

void pb_field_settle_map(ProtobufCMessage *msg, const ProtobufCFieldDescriptor *field)
{
    size_t *count = &MEMBER(size_t, msg, field->quantifier_offset);
    ProtobufCMessage **array = MEMBER(ProtobufCMessage **, msg, field->offset);
    for (size_t i = 0; i < *count; i++)
        need_value(array[i]);
    if (*count < 2)
        return;
    struct entry *all = mem_alloc(*count * sizeof(*all));
    for (size_t i = 0; i < *count; i++) {
        const ProtobufCFieldDescriptor *key = &array[i]->descriptor->fields[0];
        all[i] = (struct entry){array[i], pb_field_at(array[i], key, 0), key, i, i};
    }
    qsort(all, *count, sizeof(*all), by_key);
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        size_t first = all[i].order;
        while (i + 1 < *count && compare_keys(&all[i], &all[i + 1]) == 0)
            pb_field_free_message(all[i++].msg);
        all[kept] = all[i];
        all[kept++].first = first;
    }
    qsort(all, kept, sizeof(*all), by_first_use);
    ProtobufCMessage **settled = mem_alloc(kept * sizeof(*settled));
    for (size_t i = 0; i < kept; i++)
        settled[i] = all[i].msg;
    mem_free(array);
    MEMBER(ProtobufCMessage **, msg, field->offset) = settled;
    *count = kept;
    mem_free(all);
}

void pb_field_set_string(char **member, const char *value)
{
    if (*member != protobuf_c_empty_string)
        mem_free(*member);
    *member = mem_strdup(value);
}
