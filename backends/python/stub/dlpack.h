#pragma once

#include <stdint.h>

/* The DLPack interface, version 0.8: what libraries hand tensors to each other with. */

enum dlpack_code {
    DLPACK_INT,
    DLPACK_UINT,
    DLPACK_FLOAT,
    DLPACK_BFLOAT = 4,
    DLPACK_BOOL = 6,
    DLPACK_NONE = 255
};
enum dlpack_place { DLPACK_CPU = 1, DLPACK_PINNED = 3 };

struct dlpack_device {
    int32_t type;
    int32_t number;
};

struct dlpack_type {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    struct dlpack_device device;
    int32_t rank;
    struct dlpack_type datatype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL = contiguous */
    uint64_t byte_offset;
};

struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *managed);
};
