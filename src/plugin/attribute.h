#pragma once
/* What a backend says about itself: the TRITONBACKEND_BackendAttribute of the C ABI. */
#include "base/err.h"
#include "model/config_groups.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATTRIBUTE_MAX_WISHES  16
#define ATTRIBUTE_MAX_DEVICES 64

struct attribute {
    uint32_t magic;
    bool parallel_instances; /* its instances may be initialised at the same time */
    struct config_groups_wish wishes[ATTRIBUTE_MAX_WISHES]; /* in order of preference */
    int32_t devices[ATTRIBUTE_MAX_WISHES][ATTRIBUTE_MAX_DEVICES];
    size_t wish_count;
};

/* attribute_init - nothing is set yet. */
void attribute_init(struct attribute *a);

/* attribute_add_wish - add an instance group that the backend prefers.
 * kind     a value of ModelInstanceGroup.Kind
 * devices  device_count device numbers, copied
 * errors   INVALID_ARG above the limits */
struct err *attribute_add_wish(struct attribute *a, int kind, uint64_t count,
                               const uint64_t *devices, uint64_t device_count);

/* attribute_check - the object behind an ABI handle.
 * attribute_is - true if the handle is one. */
struct attribute *attribute_check(void *handle);
bool attribute_is(const void *handle);
