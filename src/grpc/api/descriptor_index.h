#pragma once
/* The files of a FileDescriptorSet: which of them defines a name, and what each needs. Pure;
 * what is found points into the set. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most files of a set. */
#define DESCRIPTOR_INDEX_FILES 32u

struct descriptor_index_file {
    const uint8_t *data; /* a FileDescriptorProto */
    size_t len;
};

struct descriptor_index {
    struct descriptor_index_file files[DESCRIPTOR_INDEX_FILES];
    unsigned count;
};

/* descriptor_index_init - false when the bytes are no set. */
bool descriptor_index_init(struct descriptor_index *x, const void *set, size_t len);

/* descriptor_index_file - the file of that name. descriptor_index_symbol - the one that defines
 * a message, field, enumeration, service or method, by its full name; a leading dot does not
 * matter. -1 when there is none. */
int descriptor_index_file(const struct descriptor_index *x, const char *name);
int descriptor_index_symbol(const struct descriptor_index *x, const char *name);

/* descriptor_index_needs - the file and those that it needs, directly or not, as bits. */
uint32_t descriptor_index_needs(const struct descriptor_index *x, unsigned file);

/* descriptor_index_service - the full name of the n-th service of the set into `to`, cut off to
 * `room`; false when there are fewer. */
bool descriptor_index_service(const struct descriptor_index *x, unsigned n, char *to, size_t room);
