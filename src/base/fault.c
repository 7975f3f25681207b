#include "base/fault.h"

#include <stdatomic.h>

/* Relaxed: a test that arms it runs one thread; other threads only see that it is off. */
static atomic_bool armed;
static atomic_long target;
static atomic_long passed;

void fault_arm(long n)
{
    atomic_store_explicit(&passed, 0, memory_order_relaxed);
    atomic_store_explicit(&target, n, memory_order_relaxed);
    atomic_store_explicit(&armed, true, memory_order_relaxed);
}

long fault_passed(void)
{
    return atomic_load_explicit(&passed, memory_order_relaxed);
}

bool fault_hit(void)
{
    if (__builtin_expect(!atomic_load_explicit(&armed, memory_order_relaxed), 1))
        return false;
    long nth = atomic_fetch_add_explicit(&passed, 1, memory_order_relaxed) + 1;
    return nth == atomic_load_explicit(&target, memory_order_relaxed);
}
