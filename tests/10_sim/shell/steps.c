#include "shell/steps.h"

#include "base/mem.h"
#include "base/slab.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "support/unit.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MOST_THREADS 64u
#define MOST_HELD    8u
#define NOTES        200u
#define STACK_BYTES  ((size_t)4 << 20)
/* Steps that may pass without anything being achieved, and how deep a stack may become: many
 * times what is needed, see docs/internals/simulation.md. */
#define MOST_STEPS 5000u
#ifdef __SANITIZE_ADDRESS__
#define MOST_DEPTH (24u << 10)
#else
#define MOST_DEPTH (16u << 10)
#endif

enum life { FREE, LIVE, ENDED };

enum wait { NOTHING, LOCK, CONDITION, TIME, END, EVENTS };

/* A thread of the simulation: os/thread.h knows no more than its name. Threads of the system
 * stay for the next run. */
struct thread {
    sem_t go;
    pthread_t id;
    bool exists;
    enum life life;
    const char *name;
    void (*fn)(void *arg);
    void *arg;
    enum wait wait;
    const void *what; /* the lock or the condition that it waits for */
    const struct thread *other;
    int epoll_fd;
    bool told;
    time_ns until; /* of a wait that has an end; else TIME_NEVER */
    const struct mutex *held[MOST_HELD];
    unsigned held_count;
    const char *base; /* of its stack */
    uint64_t busy_ns;
    uint64_t blocks;
};

struct note {
    time_ns at;
    unsigned thread;
    const char *what;
    long a;
    long b;
};

static struct thread threads[MOST_THREADS];
static _Thread_local struct thread *self;
static bool active;
static uint64_t seed_of_run;
static uint64_t seed;
static struct steps_mood mood;
static void (*rest)(void);
static time_ns now;
static unsigned steps; /* since the last progress */
static unsigned longest;
static time_ns progress;
static unsigned long deepest;
static unsigned starts_failed;
static struct note notes[NOTES]; /* a ring */
static unsigned long noted;

extern void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

/* -- telling -- */

static const char *const waits[] = {"may go on",
                                    "waits for a lock",
                                    "waits for a condition",
                                    "sleeps",
                                    "waits for the end of another",
                                    "waits for events"};

static double ms(time_ns t)
{
    return (double)t / 1e6;
}

static void tell(void)
{
    fprintf(stderr, "shell simulation: NEREID_SIM_SEED=%" PRIu64 ", at %.6f ms\nthreads:\n",
            seed_of_run, ms(now));
    for (unsigned i = 0; i < MOST_THREADS; i++) {
        const struct thread *t = &threads[i];
        if (t->life == LIVE)
            fprintf(stderr, "  %2u %-10s %s%s until %.6f ms\n", i, t->name, waits[t->wait],
                    t == self ? " (speaks)" : "", t->until == TIME_NEVER ? -1.0 : ms(t->until));
    }
    fprintf(stderr, "the last steps:\n");
    for (unsigned long i = noted > NOTES ? noted - NOTES : 0; i < noted; i++) {
        const struct note *n = &notes[i % NOTES];
        fprintf(stderr, "  %14.6f ms  %2u %-10s %s %ld %ld\n", ms(n->at), n->thread,
                threads[n->thread].name, n->what, n->a, n->b);
    }
    fprintf(stderr, "NEREID_SIM_SEED=%" PRIu64 " shows it again\n", seed_of_run);
}

void steps_fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "shell simulation: ");
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    tell();
    fflush(NULL);
    _exit(1);
}

static void died(void)
{
    if (active)
        tell();
}

static void on_signal(int number)
{
    died();
    signal(number, SIG_DFL);
    raise(number);
}

/* What the undefined behaviour sanitizer finds is a crash like any other. */
__attribute__((visibility("default"))) const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "abort_on_error=1";
}

/* A crash tells the seed too. */
static void watch_crashes(void)
{
    static char stack[65536];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
    const struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(died);
        sigaction(SIGABRT, &act, NULL);
        return;
    }
    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGBUS, &act, NULL);
    sigaction(SIGABRT, &act, NULL);
}

void steps_note(const char *what, long a, long b)
{
    notes[noted++ % NOTES] = (struct note){now, self ? (unsigned)(self - threads) : 0, what, a, b};
}

void steps_progress(void)
{
    if (steps > longest)
        longest = steps;
    steps = 0;
    progress = now;
}

time_ns steps_last_progress(void)
{
    return progress;
}

unsigned long steps_depth(void)
{
    return deepest;
}

unsigned steps_longest(void)
{
    return longest;
}

unsigned steps_starts_failed(void)
{
    return starts_failed;
}

unsigned steps_self(void)
{
    return (unsigned)(self - threads);
}

/* -- chance and time -- */

const struct steps_mood *steps_mood(void)
{
    return &mood;
}

unsigned steps_pick(unsigned below)
{
    return (unsigned)(unit_random(&seed) % below);
}

bool steps_one_in(unsigned n)
{
    return n && steps_pick(n) == 0;
}

time_ns steps_now(void)
{
    return now;
}

time_ns clock_now_ns(void)
{
    if (active && mood.jitter_ns)
        now += steps_pick(mood.jitter_ns);
    return now;
}

time_ns clock_wall_ns(void)
{
    return now;
}

time_ns clock_wall_at(time_ns monotonic)
{
    return monotonic;
}

/* -- who goes on -- */

static bool is_held(const struct mutex *m)
{
    return m->told_count != 0;
}

static bool has_events(int epoll_fd)
{
    struct pollfd p = {.fd = epoll_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static bool may_go_on(const struct thread *t)
{
    switch (t->wait) {
    case NOTHING:
        return true;
    case LOCK:
        return !is_held(t->what);
    case CONDITION:
        return t->told || t->until <= now;
    case TIME:
        return t->until <= now;
    case END:
        return t->other->life == ENDED;
    case EVENTS:
        return t->until <= now || has_events(t->epoll_fd);
    }
    return false;
}

static struct thread *draw(void)
{
    struct thread *those[MOST_THREADS];
    unsigned count = 0;
    for (struct thread *t = threads; t < threads + MOST_THREADS; t++)
        if (t->life == LIVE && may_go_on(t))
            those[count++] = t;
    return count ? those[steps_pick(count)] : NULL;
}

/* Nobody can go on: time passes. */
static void pass_time(void)
{
    rest();
    time_ns next = TIME_NEVER;
    for (const struct thread *t = threads; t < threads + MOST_THREADS; t++)
        if (t->life == LIVE && t->until < next)
            next = t->until;
    if (next == TIME_NEVER)
        steps_fail("nobody will ever go on");
    now = next;
}

static void wait_for_go(struct thread *t)
{
    while (sem_wait(&t->go) != 0)
        ;
}

/* Lets another thread go on, and waits for its own turn where it is not over. */
static void hand_over(bool over)
{
    struct thread *me = self;
    struct thread *next;
    while (!(next = draw()))
        pass_time();
    if (next == me)
        return;
    sem_post(&next->go);
    if (!over)
        wait_for_go(me);
}

static void look_at_stack(void)
{
    const char *here = __builtin_frame_address(0);
    unsigned long depth = (unsigned long)(self->base > here ? self->base - here : 0);
    if (depth > deepest)
        deepest = depth;
    if (depth > MOST_DEPTH)
        steps_fail("a thread is %lu bytes deep in its stack: something calls itself", depth);
}

/* Here another thread may go on. Not while a lock of the inner ranks is held: what these guard
 * has no part in who goes first. */
static void step(void)
{
    if (!active || !self)
        return;
    look_at_stack();
    if (++steps > MOST_STEPS)
        steps_fail("%u steps without an answer, an execution or a request: something spins", steps);
    if (self->held_count && self->held[self->held_count - 1]->rank > MUTEX_RANK_SCHEDULER)
        return;
    if (steps_one_in(mood.calm))
        hand_over(false);
}

static void wait_until(enum wait wait, time_ns until)
{
    self->wait = wait;
    self->until = until;
    self->blocks++;
    hand_over(false);
    self->wait = NOTHING;
    self->until = TIME_NEVER;
}

void steps_sleep(time_ns span)
{
    if (span)
        wait_until(TIME, now + span);
    else
        step();
}

void steps_busy(time_ns span)
{
    uint64_t blocks = self->blocks;
    steps_sleep(span);
    self->blocks = blocks;
    self->busy_ns += span;
}

/* -- os/mutex.h -- */

void mutex_init(struct mutex *m, enum mutex_rank rank)
{
    memset(m, 0, sizeof(*m));
    m->rank = rank;
}

void mutex_fini(struct mutex *m)
{
    if (is_held(m))
        steps_fail("a lock goes while it is held");
}

static void acquire(struct mutex *m)
{
    while (is_held(m)) {
        if (!active)
            steps_fail("a lock is held outside of a run");
        self->what = m;
        wait_until(LOCK, TIME_NEVER);
    }
    m->told_count = 1;
    if (!self)
        return;
    if (self->held_count && self->held[self->held_count - 1]->rank >= m->rank)
        steps_fail("a lock of rank %d is taken under one of rank %d", (int)m->rank,
                   (int)self->held[self->held_count - 1]->rank);
    if (self->held_count == MOST_HELD)
        steps_fail("a thread holds %u locks", MOST_HELD);
    self->held[self->held_count++] = m;
}

static void release(struct mutex *m)
{
    if (self && (!self->held_count || self->held[--self->held_count] != m))
        steps_fail("a lock is released that is not the last one taken");
    m->told_count = 0;
}

void mutex_lock(struct mutex *m)
{
    step();
    acquire(m);
}

void mutex_unlock(struct mutex *m)
{
    release(m);
    step();
}

void mutex_assert_held(const struct mutex *m)
{
    if (!is_held(m))
        steps_fail("a lock is not held");
}

void mutex_cond_init(struct mutex_cond *c)
{
    memset(c, 0, sizeof(*c));
}

void mutex_cond_fini(struct mutex_cond *c)
{
    (void)c;
}

static struct thread *waiter(const struct mutex_cond *c)
{
    struct thread *those[MOST_THREADS];
    unsigned count = 0;
    for (struct thread *t = threads; t < threads + MOST_THREADS; t++)
        if (t->life == LIVE && t->wait == CONDITION && t->what == c && !t->told)
            those[count++] = t;
    return count ? those[steps_pick(count)] : NULL;
}

void mutex_cond_signal(struct mutex_cond *c)
{
    struct thread *t = waiter(c);
    if (t)
        t->told = true;
}

void mutex_cond_broadcast(struct mutex_cond *c)
{
    struct thread *t;
    while ((t = waiter(c)))
        t->told = true;
}

void mutex_cond_wait(struct mutex_cond *c, struct mutex *m)
{
    mutex_cond_wait_until(c, m, TIME_NEVER);
}

bool mutex_cond_wait_until(struct mutex_cond *c, struct mutex *m, time_ns until)
{
    if (!active)
        steps_fail("a thread waits outside of a run");
    if (++steps > MOST_STEPS)
        steps_fail("%u steps without an answer, an execution or a request: something spins", steps);
    release(m);
    self->what = c;
    self->told = steps_one_in(mood.spurious);
    wait_until(CONDITION, until);
    bool in_time = self->told;
    acquire(m);
    return in_time;
}

/* -- os/thread.h -- */

/* A thread of the system: it runs one thread of the simulation after the other. */
static void *run_threads(void *arg)
{
    self = arg;
    self->base = __builtin_frame_address(0);
    for (;;) {
        wait_for_go(self);
        slab_thread_begin();
        self->fn(self->arg);
        slab_thread_end();
        if (self->held_count)
            steps_fail("a thread ends and holds a lock");
        self->life = ENDED;
        hand_over(true);
    }
    return NULL;
}

static void make_thread(struct thread *t)
{
    pthread_attr_t attr;
    t->exists = true;
    sem_init(&t->go, 0, 0);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&t->id, &attr, run_threads, t) != 0)
        steps_fail("the system has no thread to give");
    pthread_attr_destroy(&attr);
}

struct err *thread_start(const char *name, void (*fn)(void *arg), void *arg, struct thread **ret)
{
    struct thread *t = threads;
    if (strcmp(name, "instance") == 0 && steps_one_in(mood.thread_failures)) {
        starts_failed++;
        steps_note("no thread can be started", (long)starts_failed, 0);
        return err_new(STATUS_UNAVAILABLE, "starting thread '%s': there is none", name);
    }
    while (t < threads + MOST_THREADS && t->life != FREE)
        t++;
    if (t == threads + MOST_THREADS)
        steps_fail("more than %u threads", MOST_THREADS);
    t->life = LIVE;
    t->name = name;
    t->fn = fn;
    t->arg = arg;
    t->wait = NOTHING;
    t->until = TIME_NEVER;
    t->busy_ns = 0;
    t->blocks = 0;
    if (!t->exists)
        make_thread(t);
    *ret = t;
    step();
    return NULL;
}

bool thread_is_of_server(void)
{
    return self && self != threads;
}

void thread_join(struct thread *t)
{
    if (!t)
        return;
    if (t->life != ENDED) {
        self->other = t;
        wait_until(END, TIME_NEVER);
    }
    t->life = FREE;
}

void thread_leave(struct thread *t)
{
    (void)t;
    fail_msg("no thread of this simulation is left behind");
}

void thread_background(void)
{
}

unsigned thread_slot(void)
{
    return self ? (unsigned)(self - threads) % THREAD_SLOTS : 0;
}

void thread_usage(struct thread_usage *ret)
{
    *ret = (struct thread_usage){.cpu_ns = self->busy_ns, .blocks = self->blocks};
}

/* -- os/loop.c asks the system -- */

int epoll_wait(int epoll_fd, struct epoll_event *events, int most, int timeout)
{
    if (active && timeout) {
        self->epoll_fd = epoll_fd;
        wait_until(EVENTS, timeout < 0 ? TIME_NEVER : now + TIME_MS(timeout));
    }
    return epoll_pwait(epoll_fd, events, most, 0, NULL);
}

/* -- a run -- */

/* Most threads of a run wait most of the time: one processor hands over faster than two. */
static void keep_to_one_cpu(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
}

static void draw_mood(void)
{
    static const unsigned calm[] = {2, 4, 12, 40};
    static const unsigned jitter[] = {0, 0, 200, 20000};
    mood = (struct steps_mood){
        .calm = calm[steps_pick(4)],
        .jitter_ns = jitter[steps_pick(4)],
        .spurious = steps_pick(4) ? 0 : 10,
        .thread_failures = steps_pick(6) ? 0 : 4,
    };
}

void steps_begin(uint64_t of_run, void (*at_rest)(void))
{
    static bool begun;
    if (!begun) {
        watch_crashes();
        keep_to_one_cpu();
        sem_init(&threads[0].go, 0, 0);
    }
    begun = true;
    seed = seed_of_run = of_run;
    rest = at_rest;
    now = TIME_S(100);
    noted = 0;
    starts_failed = 0;
    draw_mood();
    steps_progress();
    self = &threads[0];
    *self = (struct thread){.go = self->go,
                            .life = LIVE,
                            .name = "main",
                            .until = TIME_NEVER,
                            .base = __builtin_frame_address(0)};
    active = true;
}

void steps_end(void)
{
    for (unsigned i = 1; i < MOST_THREADS; i++)
        if (threads[i].life != FREE)
            steps_fail("thread '%s' was never joined", threads[i].name);
    active = false;
    self = NULL;
}
