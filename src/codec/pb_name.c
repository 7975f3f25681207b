#include "codec/pb_name.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* Names longer than this get no suggestion. */
#define NAME_MAX_BYTES 64

static bool same(const char *a, const char *b, size_t len)
{
    return strlen(a) == len && memcmp(a, b, len) == 0;
}

const ProtobufCFieldDescriptor *pb_name_field(const ProtobufCMessageDescriptor *type,
                                              const char *name, size_t len)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (same(type->fields[i].name, name, len))
            return &type->fields[i];
    return NULL;
}

/* same_camel - true if `name` is the lowerCamelCase form of a schema name. */
static bool same_camel(const char *schema, const char *name, size_t len)
{
    size_t n = 0;
    bool upper = false;
    for (; *schema; schema++) {
        if (*schema == '_') {
            upper = true;
            continue;
        }
        char want =
            upper && *schema >= 'a' && *schema <= 'z' ? (char)(*schema - 'a' + 'A') : *schema;
        if (n == len || name[n++] != want)
            return false;
        upper = false;
    }
    return n == len;
}

const ProtobufCFieldDescriptor *pb_name_json_field(const ProtobufCMessageDescriptor *type,
                                                   const char *name, size_t len)
{
    const ProtobufCFieldDescriptor *found = pb_name_field(type, name, len);
    for (unsigned i = 0; !found && i < type->n_fields; i++)
        if (same_camel(type->fields[i].name, name, len))
            found = &type->fields[i];
    return found;
}

const ProtobufCEnumValue *pb_name_value(const ProtobufCEnumDescriptor *type, const char *name,
                                        size_t len)
{
    for (unsigned i = 0; i < type->n_value_names; i++)
        if (same(type->values_by_name[i].name, name, len))
            return &type->values[type->values_by_name[i].index];
    return NULL;
}

const ProtobufCEnumValue *pb_name_json_value(const ProtobufCEnumDescriptor *type, const char *name,
                                             size_t len)
{
    const ProtobufCEnumValue *found = pb_name_value(type, name, len);
    for (unsigned i = 0; !found && i < type->n_value_names; i++) {
        const char *value = type->values_by_name[i].name;
        if (strlen(value) == len && strncasecmp(value, name, len) == 0)
            found = &type->values[type->values_by_name[i].index];
    }
    return found;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* pb_name_distance - the number of letters to change, add or remove. Both names have at most
 * NAME_MAX_BYTES. */
static size_t pb_name_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t row[NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
            corner = row[j];
            row[j] = smaller(change, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_len];
}

struct nearest {
    const char *name;
    size_t distance;
};

static void consider(struct nearest *best, const char *candidate, const char *name, size_t len)
{
    size_t n = strlen(candidate);
    if (len > NAME_MAX_BYTES || n > NAME_MAX_BYTES)
        return;
    size_t d = pb_name_distance(candidate, n, name, len);
    /* The beginning of a name, or a name with more text after it, is a likely mistake too:
     * "max_batch", "inputs". */
    size_t common = smaller(n, len);
    if (common >= 3 && memcmp(candidate, name, common) == 0)
        d = smaller(d, 2);
    if (d < best->distance && d <= 1 + common / 3)
        *best = (struct nearest){candidate, d};
}

const char *pb_name_nearest_field(const ProtobufCMessageDescriptor *type, const char *name,
                                  size_t len)
{
    struct nearest best = {NULL, SIZE_MAX};
    for (unsigned i = 0; i < type->n_fields; i++)
        consider(&best, type->fields[i].name, name, len);
    return best.name;
}

const char *pb_name_nearest_value(const ProtobufCEnumDescriptor *type, const char *name, size_t len)
{
    struct nearest best = {NULL, SIZE_MAX};
    for (unsigned i = 0; i < type->n_value_names; i++)
        consider(&best, type->values_by_name[i].name, name, len);
    /* Accept "FP32" and "fp32" for TYPE_FP32: the part after the prefix that all values of the
     * enum share. */
    for (unsigned i = 0; !best.name && i < type->n_value_names; i++) {
        const char *value = type->values_by_name[i].name;
        size_t n = strlen(value);
        if (n > len && value[n - len - 1] == '_' && strncasecmp(value + n - len, name, len) == 0)
            best.name = value;
    }
    return best.name;
}
