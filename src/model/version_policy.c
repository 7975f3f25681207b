#include "model/version_policy.h"

#include "proto/model_config.pb-c.h"

#include <stdlib.h>
#include <string.h>

bool version_policy_parse_dir(const char *name, int64_t *ret)
{
    if (*name < '1' || *name > '9')
        return false;
    int64_t value = 0;
    for (; *name; name++)
        if (*name < '0' || *name > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *name - '0', &value))
            return false;
    *ret = value;
    return true;
}

static int version_policy_ascending(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x;
    int64_t b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

/* pick_specific - move the versions that are asked for to the front, in order. */
static size_t pick_specific(const Inference__ModelVersionPolicy__Specific *specific,
                            int64_t *versions, size_t count, int64_t *missing)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < specific->n_versions; k++)
            if (specific->versions[k] == versions[i]) {
                versions[kept++] = versions[i];
                break;
            }
    for (size_t k = 0; k < specific->n_versions && *missing < 0; k++)
        if (!kept || !bsearch(&specific->versions[k], versions, kept, sizeof(*versions),
                              version_policy_ascending))
            *missing = specific->versions[k];
    return kept;
}

void version_policy_pick(const Inference__ModelVersionPolicy *policy, int64_t *versions,
                         size_t count, size_t *ret_count, int64_t *missing)
{
    int64_t ignored;
    int64_t *first_missing = missing ? missing : &ignored;
    *first_missing = -1;
    *ret_count = 0;
    if (count)
        qsort(versions, count, sizeof(*versions), version_policy_ascending);
    int choice = policy ? (int)policy->policy_choice_case : 0;
    if (choice == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_ALL) {
        *ret_count = count;
    } else if (choice == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_SPECIFIC) {
        *ret_count = pick_specific(policy->specific, versions, count, first_missing);
    } else {
        size_t n = choice == INFERENCE__MODEL_VERSION_POLICY__POLICY_CHOICE_LATEST
                       ? policy->latest->num_versions
                       : 0;
        n = n == 0 ? 1 : n;
        *ret_count = n < count ? n : count;
        if (count)
            memmove(versions, versions + (count - *ret_count), *ret_count * sizeof(*versions));
    }
}
