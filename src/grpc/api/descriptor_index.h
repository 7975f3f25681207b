#pragma once
/* An index of the files of a FileDescriptorSet: which file defines a name, and which files each
 * file needs. Pure; results point into the set. */
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

/* descriptor_index_init - false if the bytes are not a set. */
bool descriptor_index_init(struct descriptor_index *x, const void *set, size_t len);

/* descriptor_index_file - the file with that name; -1 if there is none.
 * descriptor_index_symbol - the file that defines a message, field, enumeration, service or
 * method with that full name; a leading dot is ignored. -1 if there is none. */
int descriptor_index_file(const struct descriptor_index *x, const char *name);
int descriptor_index_symbol(const struct descriptor_index *x, const char *name);

/* descriptor_index_needs - the file and all files that it needs, directly or indirectly, as
 * bits. */
uint32_t descriptor_index_needs(const struct descriptor_index *x, unsigned file);

/* descriptor_index_service - write the full name of the n-th service of the set to `to`, cut to
 * `room`; false if there are fewer services. */
bool descriptor_index_service(const struct descriptor_index *x, unsigned n, char *to, size_t room);
