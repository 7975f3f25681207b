#include "support/fault_run.h"

#include "base/budget.h"
#include "base/fault.h"
#include "support/unit.h"

#include <dirent.h>

static long open_descriptors(void)
{
    long n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Returns how many fault points were passed; the n-th one failed if there were that many. */
static long play(fault_scenario *scenario, void *arg, long n)
{
    size_t charged = budget_in_use();
    long descriptors = open_descriptors();
    fault_arm(n);
    struct err *e = scenario(arg);
    long passed = fault_passed();
    fault_arm(0);
    bool hit = n > 0 && passed >= n;
    if (hit != (e != NULL)) {
        print_error("fault %ld of %ld: %s\n", n, passed, e ? err_message(e) : "went unnoticed");
        fail();
    }
    if (e)
        assert_true(err_message(e)[0] != '\0');
    err_free(e);
    assert_int_equal(budget_in_use(), charged);
    assert_int_equal(open_descriptors(), descriptors);
    return passed;
}

long fault_run(fault_scenario *scenario, void *arg)
{
    long points = play(scenario, arg, 0);
    for (long n = 1; n <= points; n++)
        play(scenario, arg, n);
    return points;
}
