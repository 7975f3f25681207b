#include "repo/plan.h"

#include "base/mem.h"
#include "model/config.h"
#include "model/config_fill.h"
#include "proto/model_config.pb-c.h"

#include <string.h>

enum plan_action plan_version(const struct plan_have *have, size_t have_count,
                              const struct plan_want *want, enum plan_change change)
{
    for (size_t i = 0; i < have_count; i++) {
        if (have[i].number != want->number)
            continue;
        if (change == PLAN_ANY || have[i].stamp != want->stamp)
            return PLAN_SWAP;
        return change == PLAN_GROUPS ? PLAN_RESIZE : PLAN_KEEP;
    }
    return PLAN_LOAD;
}

/* The message as bytes, or only the part that may change without loading the version again. The
 * caller frees it (mem_free). */
static uint8_t *bytes_of(const Inference__ModelConfig *proto, bool all, size_t *ret_len)
{
    Inference__ModelConfig part = *proto;
    if (!all) {
        part.n_instance_group = 0;
        part.version_policy = NULL;
    }
    *ret_len = inference__model_config__get_packed_size(&part);
    uint8_t *bytes = mem_alloc(*ret_len + 1);
    inference__model_config__pack(&part, bytes);
    return bytes;
}

static bool equal(const Inference__ModelConfig *a, const Inference__ModelConfig *b, bool all)
{
    size_t len_a;
    size_t len_b;
    uint8_t *x = bytes_of(a, all, &len_a);
    uint8_t *y = bytes_of(b, all, &len_b);
    bool same = len_a == len_b && memcmp(x, y, len_a) == 0;
    mem_free(x);
    mem_free(y);
    return same;
}

enum plan_change plan_compare(const Inference__ModelConfig *was, const Inference__ModelConfig *now,
                              const char *name)
{
    Inference__ModelConfig *a = config_copy_proto(was);
    Inference__ModelConfig *b = config_copy_proto(now);
    config_fill_defaults(a, name);
    config_fill_defaults(b, name);
    enum plan_change change = equal(a, b, true)    ? PLAN_SAME
                              : equal(a, b, false) ? PLAN_GROUPS
                                                   : PLAN_ANY;
    config_free_proto(a);
    config_free_proto(b);
    return change;
}

bool plan_drops(const struct plan_want *want, size_t want_count, int64_t number)
{
    for (size_t i = 0; i < want_count; i++)
        if (want[i].number == number)
            return false;
    return true;
}
