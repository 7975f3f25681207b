#include "repo/plan.h"

enum plan_action plan_version(const struct plan_have *have, size_t have_count,
                              const struct plan_want *want, bool again)
{
    for (size_t i = 0; i < have_count; i++)
        if (have[i].number == want->number)
            return again || have[i].stamp != want->stamp ? PLAN_SWAP : PLAN_KEEP;
    return PLAN_LOAD;
}

bool plan_drops(const struct plan_want *want, size_t want_count, int64_t number)
{
    for (size_t i = 0; i < want_count; i++)
        if (want[i].number == number)
            return false;
    return true;
}
