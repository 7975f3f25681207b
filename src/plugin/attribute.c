#include "plugin/attribute.h"

#include "base/check.h"

#define ATTRIBUTE_MAGIC 0x41545452u

void attribute_init(struct attribute *a)
{
    a->magic = ATTRIBUTE_MAGIC;
    a->parallel_instances = false;
    a->wish_count = 0;
}

struct err *attribute_add_wish(struct attribute *a, int kind, uint64_t count,
                               const uint64_t *devices, uint64_t device_count)
{
    if (a->wish_count == ATTRIBUTE_MAX_WISHES || device_count > ATTRIBUTE_MAX_DEVICES ||
        count > INT32_MAX)
        return err_new(STATUS_INVALID_ARG,
                       "at most %d preferred instance groups of at most %d devices are taken",
                       ATTRIBUTE_MAX_WISHES, ATTRIBUTE_MAX_DEVICES);
    int32_t *ids = a->devices[a->wish_count];
    for (uint64_t i = 0; i < device_count; i++)
        ids[i] = (int32_t)devices[i];
    a->wishes[a->wish_count++] = (struct config_groups_wish){
        .kind = kind, .count = (int32_t)count, .gpus = ids, .gpu_count = device_count};
    return NULL;
}

bool attribute_is(const void *handle)
{
    const struct attribute *o = handle;
    return o && o->magic == ATTRIBUTE_MAGIC;
}

struct attribute *attribute_check(void *handle)
{
    struct attribute *a = handle;
    CHECK_MAGIC(a, ATTRIBUTE_MAGIC);
    return a;
}
