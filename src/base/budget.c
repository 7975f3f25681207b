#include "base/budget.h"

#include "base/check.h"

#include <stdatomic.h>
#include <stdint.h>

/* Relaxed: the numbers order nothing, they only add up. */
static atomic_size_t limit = SIZE_MAX;
static atomic_size_t in_use;

void budget_set_limit(size_t bytes)
{
    atomic_store_explicit(&limit, bytes, memory_order_relaxed);
}

size_t budget_limit(void)
{
    return atomic_load_explicit(&limit, memory_order_relaxed);
}

/* Compared before it is added: a charge that is refused must never be seen by others, let alone wrap around. */
bool budget_charge(size_t n)
{
    size_t most = budget_limit();
    size_t now = atomic_load_explicit(&in_use, memory_order_relaxed);
    do {
        if (n > most || now > most - n)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&in_use, &now, now + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void budget_release(size_t n)
{
    size_t before = atomic_fetch_sub_explicit(&in_use, n, memory_order_relaxed);
    CHECK(before >= n);
}

size_t budget_in_use(void)
{
    return atomic_load_explicit(&in_use, memory_order_relaxed);
}
