#include "os/thread.h"

#include "base/fault.h"
#include "base/slab.h"
#include "support/unit.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct seen {
    char name[16];
    bool all_blocked;
    unsigned slot;
    unsigned slot_again;
};

static void look(void *arg)
{
    static const struct slab objects = {.kind = SLAB_TEST, .object_bytes = 64};
    struct seen *s = arg;
    sigset_t mask;
    pthread_getname_np(pthread_self(), s->name, sizeof(s->name));
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    s->all_blocked =
        sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGUSR1);
    s->slot = thread_slot();
    slab_free(&objects, slab_alloc(&objects)); /* kept by the thread, freed at its end */
    s->slot_again = thread_slot();
}

static void runs_with_its_name(void **state)
{
    (void)state;
    struct seen s = {0};
    struct thread *t;
    sigset_t before;
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    unit_succeeds(thread_start("a-name-that-is-too-long", look, &s, &t));
    thread_join(t);
    thread_join(NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_string_equal(s.name, "a-name-that-is-");
    assert_true(s.all_blocked);
    assert_true(s.slot < THREAD_SLOTS);
    assert_int_equal(s.slot, s.slot_again);
    assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

/* Threads spread over the slots. */
static void slots(void **state)
{
    (void)state;
    bool used[THREAD_SLOTS] = {false};
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        struct seen s;
        struct thread *t;
        unit_succeeds(thread_start("slot", look, &s, &t));
        thread_join(t);
        assert_false(used[s.slot]);
        used[s.slot] = true;
    }
}

static void must_not_run(void *arg)
{
    *(bool *)arg = true;
}

static void no_thread_to_give(void **state)
{
    (void)state;
    bool ran = false;
    struct thread *t = NULL;
    fault_arm(1);
    struct err *e = thread_start("none", must_not_run, &ran, &t);
    fault_arm(0);
    unit_fails(e, STATUS_UNAVAILABLE, "starting thread 'none'");
    assert_null(t);
    assert_false(ran);
}

/* What sched_getattr(2) says; its first size. */
struct policy {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice_ns, deadline_ns, period_ns;
};

static void ask_policy(void *arg)
{
    struct policy *before = arg;
    struct policy *after = before + 1;
    syscall(SYS_sched_getattr, 0, before, sizeof(*before), 0);
    thread_prompt();
    syscall(SYS_sched_getattr, 0, after, sizeof(*after), 0);
}

/* Its slice is shorter where Linux tells one, and all else as it was. */
static void prompt(void **state)
{
    (void)state;
    struct policy seen[2];
    struct thread *t;
    unit_succeeds(thread_start("prompt", ask_policy, seen, &t));
    thread_join(t);
    assert_int_equal(seen[1].policy, seen[0].policy);
    assert_int_equal(seen[1].nice, seen[0].nice);
    if (seen[0].slice_ns)
        assert_true(seen[1].slice_ns < seen[0].slice_ns);
}

UNIT_MAIN(UNIT(prompt), UNIT(runs_with_its_name), UNIT(slots), UNIT(no_thread_to_give))
