#include "os/thread.h"

#include "base/fault.h"
#include "base/slab.h"
#include "support/unit.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

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

UNIT_MAIN(UNIT(runs_with_its_name), UNIT(slots), UNIT(no_thread_to_give))
