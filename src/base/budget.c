#include "base/budget.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

/* Relaxed, because only the sums matter. */
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

/* Compares before it adds: other threads must never see a charge that is then refused, nor a sum
 * that wraps around. */
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

bool budget_room(size_t n)
{
    size_t now = budget_in_use();
    return now < budget_limit() && n <= budget_limit() - now;
}

bool budget_charge_up(size_t *charged, size_t n)
{
    if (n <= *charged)
        return true;
    if (!budget_charge(n - *charged))
        return false;
    *charged = n;
    return true;
}

struct err *budget_busy(size_t n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct err *wanted = err_vnew(STATUS_UNAVAILABLE, fmt, args);
    va_end(args);
    size_t most = budget_limit();
    struct err *e =
        n > most ? err_new(STATUS_UNAVAILABLE,
                           "%s: only %zu bytes may be in flight at once; raise --memory-budget",
                           err_message(wanted), most)
                 : err_busy("%s: %zu of the %zu bytes that may be in flight at once are in use; "
                            "try again later, or raise --memory-budget",
                            err_message(wanted), budget_in_use(), most);
    err_free(wanted);
    return e;
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

void budget_charge_anyway(size_t n)
{
    atomic_fetch_add_explicit(&in_use, n, memory_order_relaxed);
}

/* Bytes taken by budget_spare. */
static atomic_size_t spared;
#define SPARED_PART 16u

bool budget_spare(size_t n)
{
    size_t most = budget_limit() / SPARED_PART;
    size_t now = atomic_load_explicit(&spared, memory_order_relaxed);
    do {
        if (now && (n > most || now > most - n))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&spared, &now, now + n, memory_order_relaxed,
                                                    memory_order_relaxed));
    budget_charge_anyway(n);
    return true;
}

void budget_unspare(size_t n)
{
    size_t before = atomic_fetch_sub_explicit(&spared, n, memory_order_relaxed);
    CHECK(before >= n);
    budget_release(n);
}

/* A peer that interleaves many messages ends some before it begins others. */
#define PROOFS_MOST 64u

/* A bit of `held`: the account is closed. */
#define CLOSED (SIZE_MAX / 2 + 1)

struct budget_account {
    /* acquire and release: the thread that drops the last byte of a closed account frees it */
    atomic_size_t held;
    atomic_uint proofs; /* relaxed: nothing depends on them but speed */
};

/* What the budget is charged for an account that holds this much. */
static size_t charged_for(size_t held)
{
    return held & CLOSED ? held & ~CLOSED : held & ~(BUDGET_STEP - 1);
}

struct budget_account *budget_account_new(void)
{
    return MEM_NEW(struct budget_account);
}

bool budget_account_room(const struct budget_account *a, size_t n)
{
    if (!a)
        return true;
    size_t held = atomic_load_explicit(&a->held, memory_order_relaxed);
    if (n < BUDGET_STEP && held < BUDGET_STEP - n)
        return true;
    return budget_room(n);
}

bool budget_account_holds(const struct budget_account *a, size_t n)
{
    return a && (atomic_load_explicit(&a->held, memory_order_relaxed) & ~CLOSED) > n;
}

void budget_account_prove(struct budget_account *a)
{
    if (a && atomic_load_explicit(&a->proofs, memory_order_relaxed) < PROOFS_MOST)
        atomic_fetch_add_explicit(&a->proofs, 1, memory_order_relaxed);
}

bool budget_account_spend_proof(struct budget_account *a)
{
    if (!a || !atomic_load_explicit(&a->proofs, memory_order_relaxed))
        return false;
    atomic_fetch_sub_explicit(&a->proofs, 1, memory_order_relaxed);
    return true;
}

/* The budget is charged before the account changes, so that the charges are never less than what
 * all accounts hold. */
static bool budget_add(struct budget_account *a, size_t n, bool anyway)
{
    size_t held = atomic_load_explicit(&a->held, memory_order_relaxed);
    for (;;) {
        size_t more = charged_for(held + n) - charged_for(held);
        if (more && anyway)
            budget_charge_anyway(more);
        else if (more && !budget_charge(more))
            return false;
        if (atomic_compare_exchange_weak_explicit(&a->held, &held, held + n, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
        if (more)
            budget_release(more);
    }
}

void budget_hold(struct budget_account *a, size_t n)
{
    if (a)
        budget_add(a, n, true);
}

bool budget_take(struct budget_account *a, size_t n)
{
    return !a || (budget_account_room(a, n) && budget_add(a, n, false));
}

void budget_drop(struct budget_account *a, size_t n)
{
    if (!a)
        return;
    size_t before = atomic_fetch_sub_explicit(&a->held, n, memory_order_acq_rel);
    CHECK((before & ~CLOSED) >= n);
    size_t less = charged_for(before) - charged_for(before - n);
    if (less)
        budget_release(less);
    if (before - n == CLOSED)
        mem_free(a);
}

void budget_account_close(struct budget_account *a)
{
    if (!a)
        return;
    budget_charge_anyway(BUDGET_STEP - 1);
    size_t before = atomic_fetch_or_explicit(&a->held, CLOSED, memory_order_acq_rel);
    budget_release(BUDGET_STEP - 1 - (before - charged_for(before)));
    if (!before)
        mem_free(a);
}
