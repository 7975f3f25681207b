#pragma once
/* Size and place of a run of bytes: the TRITONSERVER_BufferAttributes of the C ABI. */
#include "base/buf.h"

#include <stdint.h>

struct buffer_attributes {
    uint32_t magic;
    enum buf_memory memory;
    int64_t device;
    uint64_t byte_size;
    void *cuda_ipc; /* a cudaIpcMemHandle_t that the caller owns; NULL = none */
};

/* buffer_attributes_init - describe memory; it has no handle for other processes. */
void buffer_attributes_init(struct buffer_attributes *b, uint64_t byte_size, enum buf_memory memory,
                            int64_t device);

/* buffer_attributes_new, buffer_attributes_free - on the heap; a new one describes 0 bytes of
 * CPU memory. NULL is fine. */
struct buffer_attributes *buffer_attributes_new(void);
void buffer_attributes_free(struct buffer_attributes *b);

/* buffer_attributes_of - the object behind an ABI handle; NULL if the handle is none. */
struct buffer_attributes *buffer_attributes_of(const void *handle);
