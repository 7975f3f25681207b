#include "os/thread.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/slab.h"
#include "os/clock.h"
#include "os/signal_stack.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BACKGROUND_NICE 10
#define PROMPT_SLICE    TIME_US(100) /* the shortest that the system gives */

struct thread {
    pthread_t id;
    void (*fn)(void *arg);
    void *arg;
    char name[16];
    bool of_prompt; /* the thread that started it is prompt */
};

static _Thread_local bool of_server;
static _Thread_local bool is_prompt;

/* struct sched_attr of linux/sched/types.h, in its first version. That header and newer ones of the
 * C library exclude each other. */
struct sched_settings {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* of SCHED_OTHER and SCHED_BATCH: the slice; 0 = the system's */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

static void thread_set_slice(time_ns slice)
{
    struct sched_settings s = {.size = sizeof(s)};
    if (syscall(SYS_sched_getattr, 0, &s, sizeof(s), 0) != 0)
        return;
    if (s.policy != SCHED_OTHER && s.policy != SCHED_BATCH)
        return;
    s.runtime_ns = slice;
    syscall(SYS_sched_setattr, 0, &s, 0);
}

void thread_prompt(void)
{
    is_prompt = true;
    thread_set_slice(PROMPT_SLICE);
}

static void *entry(void *p)
{
    struct thread *t = p;
    of_server = true;
    if (t->of_prompt) /* the system lets it inherit that */
        thread_set_slice(0);
    pthread_setname_np(pthread_self(), t->name);
    void *stack = signal_stack_begin();
    slab_thread_begin();
    t->fn(t->arg);
    slab_thread_end();
    signal_stack_end(stack);
    return NULL;
}

bool thread_is_of_server(void)
{
    return of_server;
}

struct err *thread_start(const char *name, void (*fn)(void *arg), void *arg, struct thread **ret)
{
    struct thread *t = MEM_NEW(struct thread);
    t->fn = fn;
    t->arg = arg;
    t->of_prompt = is_prompt;
    strncpy(t->name, name, sizeof(t->name) - 1);
    /* The main thread handles signals. A new thread inherits a mask that blocks all of them,
     * except those that report a bug at its place. */
    static const int bugs[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(bugs) / sizeof(*bugs); i++)
        sigdelset(&all, bugs[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = fault_hit() ? EAGAIN : pthread_create(&t->id, NULL, entry, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        mem_free(t);
        return err_recode(err_errno(rc, "starting thread '%s'", name), STATUS_UNAVAILABLE);
    }
    *ret = t;
    return NULL;
}

void thread_join(struct thread *t)
{
    if (!t)
        return;
    pthread_join(t->id, NULL);
    mem_free(t);
}

void thread_leave(struct thread *self)
{
    pthread_detach(self->id);
    mem_free(self);
}

/* On Linux each thread has its own nice value. */
void thread_background(void)
{
    setpriority(PRIO_PROCESS, (id_t)gettid(), BACKGROUND_NICE);
}

unsigned thread_slot(void)
{
    static atomic_uint next;
    static _Thread_local unsigned mine; /* slot + 1; 0 = not chosen yet */
    if (!mine)
        mine = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % THREAD_SLOTS + 1;
    return mine - 1;
}

void thread_usage(struct thread_usage *ret)
{
    struct timespec cpu;
    struct rusage use;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    getrusage(RUSAGE_THREAD, &use);
    ret->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    ret->blocks = (uint64_t)use.ru_nvcsw;
}
