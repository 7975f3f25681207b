#include "grpc/api/descriptor_index.h"

#include "codec/pb_wire.h"

#include <stdio.h>
#include <string.h>

/* Field numbers of google.protobuf.FileDescriptorProto and its parts. */
enum {
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_DEPENDENCY = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    ANY_NAME = 1,
    MESSAGE_FIELD = 2,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    SERVICE_METHOD = 2,
};

#define MOST_NESTED 16

struct text {
    const char *at;
    size_t len;
};

/* The first bytes field with that number; empty if there is none. */
static struct text descriptor_index_field(const uint8_t *data, size_t len, uint32_t number)
{
    struct pb_wire w = pb_wire_of(data, len);
    struct pb_wire_field f;
    while (pb_wire_next(&w, &f) == PB_WIRE_FIELD)
        if (f.number == number && f.type == PB_WIRE_BYTES)
            return (struct text){(const char *)f.data, f.len};
    return (struct text){"", 0};
}

bool descriptor_index_init(struct descriptor_index *x, const void *set, size_t len)
{
    *x = (struct descriptor_index){0};
    struct pb_wire w = pb_wire_of(set, len);
    struct pb_wire_field f;
    enum pb_wire_result r;
    while ((r = pb_wire_next(&w, &f)) == PB_WIRE_FIELD) {
        if (f.number != SET_FILE || f.type != PB_WIRE_BYTES || x->count == DESCRIPTOR_INDEX_FILES)
            return false;
        x->files[x->count++] = (struct descriptor_index_file){f.data, f.len};
    }
    return r == PB_WIRE_END;
}

static int descriptor_index_find_file(const struct descriptor_index *x, struct text name)
{
    for (unsigned i = 0; i < x->count; i++) {
        struct text is = descriptor_index_field(x->files[i].data, x->files[i].len, FILE_NAME);
        if (is.len == name.len && memcmp(is.at, name.at, name.len) == 0)
            return (int)i;
    }
    return -1;
}

int descriptor_index_file(const struct descriptor_index *x, const char *name)
{
    return descriptor_index_find_file(x, (struct text){name, strlen(name)});
}

/* Skips "part" or "part." at the front of a name. Returns false if the name does not begin so. */
static bool descriptor_index_eat(struct text *name, struct text part)
{
    if (name->len < part.len || memcmp(name->at, part.at, part.len) != 0)
        return false;
    if (name->len > part.len && name->at[part.len] != '.')
        return false;
    size_t n = part.len + (name->len > part.len);
    name->at += n;
    name->len -= n;
    return true;
}

/* True if the name, or the rest of it, is that of a definition or of something inside it. */
static bool defines(const uint8_t *data, size_t len, struct text name, const uint32_t *inside,
                    unsigned depth)
{
    static const uint32_t of_message[] = {MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM, 0};
    static const uint32_t of_nothing[] = {0};
    if (!descriptor_index_eat(&name, descriptor_index_field(data, len, ANY_NAME)))
        return false;
    if (!name.len)
        return true;
    struct pb_wire w = pb_wire_of(data, len);
    struct pb_wire_field f;
    while (depth < MOST_NESTED && pb_wire_next(&w, &f) == PB_WIRE_FIELD) {
        bool looked_at = false;
        for (const uint32_t *number = inside; *number && f.type == PB_WIRE_BYTES; number++)
            looked_at = looked_at || *number == f.number;
        bool nested = inside[0] == MESSAGE_FIELD && inside[1] && f.number == MESSAGE_NESTED;
        if (looked_at && defines(f.data, f.len, name, nested ? of_message : of_nothing, depth + 1))
            return true;
    }
    return false;
}

static bool file_defines(const struct descriptor_index_file *file, struct text name)
{
    static const uint32_t of_message[] = {MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM, 0};
    static const uint32_t of_service[] = {SERVICE_METHOD, 0};
    static const uint32_t of_enum[] = {0};
    struct text package = descriptor_index_field(file->data, file->len, FILE_PACKAGE);
    if (package.len && (!descriptor_index_eat(&name, package) || !name.len))
        return false;
    struct pb_wire w = pb_wire_of(file->data, file->len);
    struct pb_wire_field f;
    while (pb_wire_next(&w, &f) == PB_WIRE_FIELD) {
        const uint32_t *inside = f.number == FILE_MESSAGE   ? of_message
                                 : f.number == FILE_SERVICE ? of_service
                                 : f.number == FILE_ENUM    ? of_enum
                                                            : NULL;
        if (inside && f.type == PB_WIRE_BYTES && defines(f.data, f.len, name, inside, 0))
            return true;
    }
    return false;
}

int descriptor_index_symbol(const struct descriptor_index *x, const char *name)
{
    name += *name == '.';
    struct text whole = {name, strlen(name)};
    for (unsigned i = 0; whole.len && i < x->count; i++)
        if (file_defines(&x->files[i], whole))
            return (int)i;
    return -1;
}

uint32_t descriptor_index_needs(const struct descriptor_index *x, unsigned file)
{
    uint32_t all = 1u << file;
    for (uint32_t before = 0; before != all;) {
        before = all;
        for (unsigned i = 0; i < x->count; i++) {
            if (!(before & 1u << i))
                continue;
            struct pb_wire w = pb_wire_of(x->files[i].data, x->files[i].len);
            struct pb_wire_field f;
            while (pb_wire_next(&w, &f) == PB_WIRE_FIELD) {
                bool needs = f.number == FILE_DEPENDENCY && f.type == PB_WIRE_BYTES;
                int at =
                    needs
                        ? descriptor_index_find_file(x, (struct text){(const char *)f.data, f.len})
                        : -1;
                if (at >= 0)
                    all |= 1u << at;
            }
        }
    }
    return all;
}

bool descriptor_index_service(const struct descriptor_index *x, unsigned n, char *to, size_t room)
{
    for (unsigned i = 0; i < x->count; i++) {
        struct text package =
            descriptor_index_field(x->files[i].data, x->files[i].len, FILE_PACKAGE);
        struct pb_wire w = pb_wire_of(x->files[i].data, x->files[i].len);
        struct pb_wire_field f;
        while (pb_wire_next(&w, &f) == PB_WIRE_FIELD) {
            if (f.number != FILE_SERVICE || f.type != PB_WIRE_BYTES || n-- > 0)
                continue;
            struct text name = descriptor_index_field(f.data, f.len, ANY_NAME);
            snprintf(to, room, "%.*s%s%.*s", (int)package.len, package.at, package.len ? "." : "",
                     (int)name.len, name.at);
            return true;
        }
    }
    return false;
}
