#include "os/thread.h"

#include "base/fault.h"
#include "base/slab.h"
#include "support/unit.h"

#include <pthread.h>
#include <sched.h>
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

/* As struct sched_attr of the system, in its first version. */
struct settings {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice, deadline, period;
};

static struct settings settings_here(void)
{
    struct settings s = {.size = sizeof(s)};
    assert_int_equal(syscall(SYS_sched_getattr, 0, &s, sizeof(s), 0), 0);
    return s;
}

/* How long the system lets the calling thread run at a time, in ns; 0 where it does not say. */
static uint64_t slice_here(void)
{
    return settings_here().slice;
}

static void note_slice(void *slice)
{
    *(uint64_t *)slice = slice_here();
}

static uint64_t slice_of_another(void (*fn)(void *slice))
{
    uint64_t slice;
    struct thread *t;
    unit_succeeds(thread_start("slice", fn, &slice, &t));
    thread_join(t);
    return slice;
}

struct slices {
    uint64_t own, of_its_thread;
};

static void note_prompt_slices(void *arg)
{
    struct slices *s = arg;
    thread_prompt();
    s->own = slice_here();
    s->of_its_thread = slice_of_another(note_slice);
}

/* Sets 100 us by itself. Linux before 6.12 takes no notice, and only these two policies have it. */
static void ask_for_a_slice(void *slice)
{
    struct settings s = settings_here();
    if (s.policy == SCHED_OTHER || s.policy == SCHED_BATCH) {
        s.slice = 100000;
        assert_int_equal(syscall(SYS_sched_setattr, 0, &s, 0), 0);
    }
    note_slice(slice);
}

static void a_prompt_thread_is_let_run_soon_and_its_own_threads_are_not(void **state)
{
    (void)state;
    uint64_t usual = slice_of_another(note_slice);
    uint64_t shortest = slice_of_another(ask_for_a_slice);
    struct slices s;
    struct thread *t;
    unit_succeeds(thread_start("prompt", note_prompt_slices, &s, &t));
    thread_join(t);
    assert_int_equal(s.own, shortest);
    assert_int_equal(s.of_its_thread, usual);
}

UNIT_MAIN(UNIT(runs_with_its_name), UNIT(slots),
          UNIT(a_prompt_thread_is_let_run_soon_and_its_own_threads_are_not),
          UNIT(no_thread_to_give))
