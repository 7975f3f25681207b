#include "netdef.h"

#include <string.h>
#include <strings.h>

#include "../../common/berr.h"
#include "../../common/bfind.h"

/* Field numbers of caffe2.proto. */
enum { NET_OP = 2, NET_INPUT = 7, NET_OUTPUT = 8 };
enum { OP_INPUT = 1, OP_OUTPUT = 2, OP_TYPE = 4, OP_ARG = 5 };
enum { ARG_NAME = 1, ARG_FLOAT = 2, ARG_INT = 3, ARG_TEXT = 4, ARG_FLOATS = 5, ARG_INTS = 6 };
enum { ARG_TEXTS = 7 };

static const char *keep_text(struct scratch *memory, struct wire content)
{
    return wire_copy(content, scratch_take(memory, wire_size(content) + 1));
}

static size_t count_fields(struct wire message, uint32_t number)
{
    size_t count = 0;
    struct wire_field field;
    while (wire_next(&message, &field))
        count += field.number == number;
    return count;
}

static bool read_names(struct scratch *memory, struct wire message, uint32_t number, size_t *count,
                       const char ***ret_names)
{
    struct wire_field field;
    *ret_names = scratch_array(memory, count_fields(message, number), sizeof **ret_names);
    while (*ret_names && wire_next(&message, &field)) {
        if (field.number != number)
            continue;
        (*ret_names)[*count] = keep_text(memory, field.content);
        if (!(*ret_names)[(*count)++])
            return false;
    }
    return *ret_names && !message.broken;
}

static bool read_arg(struct scratch *memory, struct wire message, struct netdef_arg *arg)
{
    struct wire_field field;
    arg->content = message;
    arg->name = "";
    while (wire_next(&message, &field))
        if (field.number == ARG_NAME)
            arg->name = keep_text(memory, field.content);
    return arg->name && !message.broken;
}

static bool read_op(struct scratch *memory, struct wire message, struct netdef_op *op)
{
    struct wire_field field;
    op->type = "";
    op->args = scratch_array(memory, count_fields(message, OP_ARG), sizeof *op->args);
    if (!op->args || !read_names(memory, message, OP_INPUT, &op->input_count, &op->inputs) ||
        !read_names(memory, message, OP_OUTPUT, &op->output_count, &op->outputs))
        return false;
    while (op->type && wire_next(&message, &field)) {
        if (field.number == OP_TYPE)
            op->type = keep_text(memory, field.content);
        else if (field.number == OP_ARG &&
                 !read_arg(memory, field.content, &op->args[op->arg_count++]))
            return false;
    }
    return op->type && !message.broken;
}

TRITONSERVER_Error *netdef_read(struct scratch *memory, struct wire bytes, const char *what,
                                struct netdef *ret_netdef)
{
    struct netdef net = {0};
    struct wire_field field;
    struct wire rest = bytes;
    net.ops = scratch_array(memory, count_fields(bytes, NET_OP), sizeof *net.ops);
    if (!net.ops)
        return berr_no_memory();
    bool whole = read_names(memory, bytes, NET_INPUT, &net.input_count, &net.inputs) &&
                 read_names(memory, bytes, NET_OUTPUT, &net.output_count, &net.outputs);
    while (whole && wire_next(&rest, &field))
        if (field.number == NET_OP)
            whole = read_op(memory, field.content, &net.ops[net.op_count++]);
    if (!whole || rest.broken)
        return berr_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "'%s' is no NetDef: it breaks off, or is something else", what);
    *ret_netdef = net;
    return NULL;
}

static const struct netdef_arg *find_arg(const struct netdef_op *op, const char *name)
{
    return bfind_named(op->args, op->arg_count, sizeof *op->args, name);
}

/* Find the first field of an argument that has one of the two field numbers. */
static bool find_value(const struct netdef_op *op, const char *name, uint32_t one, uint32_t several,
                       struct wire_field *ret_field)
{
    const struct netdef_arg *arg = find_arg(op, name);
    struct wire content = arg ? arg->content : (struct wire){0};
    while (wire_next(&content, ret_field))
        if (ret_field->number == one || ret_field->number == several)
            return true;
    return false;
}

bool netdef_has(const struct netdef_op *op, const char *name)
{
    return find_arg(op, name) != NULL;
}

bool netdef_holds(const struct netdef_op *op, const char *name, enum netdef_kind kind)
{
    static const uint32_t numbers[] = {
        [NETDEF_REAL] = ARG_FLOAT, [NETDEF_WHOLE] = ARG_INT, [NETDEF_TEXT] = ARG_TEXT};
    struct wire_field field;
    return find_value(op, name, numbers[kind], numbers[kind], &field);
}

int64_t netdef_int(const struct netdef_op *op, const char *name, int64_t absent)
{
    struct wire_field field;
    return find_value(op, name, ARG_INT, ARG_INT, &field) ? (int64_t)field.value : absent;
}

float netdef_float(const struct netdef_op *op, const char *name, float absent)
{
    struct wire_field field;
    if (find_value(op, name, ARG_FLOAT, ARG_FLOAT, &field) && wire_size(field.content) == 4)
        memcpy(&absent, field.content.at, sizeof absent);
    return absent;
}

struct wire netdef_text(const struct netdef_op *op, const char *name)
{
    struct wire_field field;
    return find_value(op, name, ARG_TEXT, ARG_TEXTS, &field) ? field.content : (struct wire){0};
}

bool netdef_is(const struct netdef_op *op, const char *name, const char *text, bool absent)
{
    struct wire value = netdef_text(op, name);
    if (!value.at)
        return absent;
    return wire_size(value) == strlen(text) &&
           strncasecmp((const char *)value.at, text, strlen(text)) == 0;
}

static void add_int(uint64_t value, int64_t *values, size_t cap, size_t *count)
{
    if (*count < cap)
        values[*count] = (int64_t)value;
    ++*count;
}

size_t netdef_ints(const struct netdef_op *op, const char *name, int64_t *ret_values, size_t cap)
{
    const struct netdef_arg *arg = find_arg(op, name);
    struct wire content = arg ? arg->content : (struct wire){0};
    struct wire_field field;
    uint64_t value;
    size_t count = 0;
    while (wire_next(&content, &field)) {
        if (field.number != ARG_INTS)
            continue;
        if (!field.content.at)
            add_int(field.value, ret_values, cap, &count);
        else
            while (wire_varint(&field.content, &value)) /* packed: one field holds all values */
                add_int(value, ret_values, cap, &count);
    }
    return count;
}

size_t netdef_floats(const struct netdef_op *op, const char *name, float *ret_values, size_t cap)
{
    const struct netdef_arg *arg = find_arg(op, name);
    struct wire content = arg ? arg->content : (struct wire){0};
    struct wire_field field;
    size_t count = 0;
    while (wire_next(&content, &field)) {
        if (field.number != ARG_FLOATS)
            continue;
        /* 1, or all of a packed field */
        size_t more = wire_size(field.content) / sizeof *ret_values;
        size_t room = count < cap ? cap - count : 0;
        size_t taken = more < room ? more : room;
        if (taken)
            memcpy(ret_values + count, field.content.at, taken * sizeof *ret_values);
        count += more;
    }
    return count;
}
