#include "os/loop.h"

#include "os/backlog.h"
#include "os/thread.h"
#include "support/unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct loop *loop;
static char trace[64]; /* a letter for each thing that happened */

static int make(void **state)
{
    (void)state;
    memset(trace, 0, sizeof(trace));
    struct err *e = loop_new(&loop);
    err_free(e);
    return e ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static void happened(char c)
{
    trace[strlen(trace)] = c;
}

static void stop_at(struct loop_timer *t)
{
    (void)t;
    happened('.');
    loop_stop(loop);
}

/* Runs the loop until a timer that comes after what is due now. */
static void run(void)
{
    struct loop_timer last = LOOP_TIMER_INIT(stop_at);
    loop_timer_set(loop, &last, clock_now_ns());
    loop_run(loop);
}

static void timer_a(struct loop_timer *t)
{
    (void)t;
    assert_ptr_equal(loop_current(), loop);
    happened('a');
}

static void timer_b(struct loop_timer *t)
{
    (void)t;
    happened('b');
}

static void timers_in_order(void **state)
{
    (void)state;
    struct loop_timer a = LOOP_TIMER_INIT(timer_a);
    struct loop_timer b = LOOP_TIMER_INIT(timer_b);
    struct loop_timer cleared = LOOP_TIMER_INIT(timer_b);
    assert_null(loop_current());
    loop_timer_set(loop, &b, 2);
    loop_timer_set(loop, &a, 1);
    loop_timer_set(loop, &cleared, 1);
    loop_timer_clear(loop, &cleared);
    loop_timer_clear(loop, &cleared);
    run();
    assert_string_equal(trace, "ab.");
    assert_null(loop_current());
}

/* A timer that lies ahead makes the loop wait, and never fires early. */
static void timer_ahead(void **state)
{
    (void)state;
    struct loop_timer last = LOOP_TIMER_INIT(stop_at);
    time_ns when = clock_now_ns() + TIME_MS(3);
    loop_timer_set(loop, &last, when);
    loop_run(loop);
    assert_true(clock_now_ns() >= when);
    assert_true(loop_now(loop) >= when);
}

struct watched {
    struct loop_fd w;
    int other_end;
    struct watched *kill; /* forgotten when this one is ready */
    char letter;
};

static void on_ready(struct loop_fd *w, uint32_t events)
{
    struct watched *me = LIST_ITEM(w, struct watched, w);
    char c;
    assert_true(events & EPOLLIN);
    assert_int_equal(read(w->fd, &c, 1), 1);
    happened(me->letter);
    if (me->kill) {
        loop_del(loop, &me->kill->w);
        me->kill->w.fd = -1;
    }
}

static void watch(struct watched *p, char letter)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    *p = (struct watched){
        .w = {.fd = fds[0], .ready = on_ready}, .other_end = fds[1], .letter = letter};
    unit_succeeds(loop_add(loop, &p->w, EPOLLIN));
}

static void descriptors(void **state)
{
    (void)state;
    struct watched p;
    watch(&p, 'p');
    run();
    assert_string_equal(trace, ".");
    assert_int_equal(write(p.other_end, "x", 1), 1);
    run();
    assert_string_equal(trace, ".p.");
    loop_mod(loop, &p.w, 0);
    assert_int_equal(write(p.other_end, "x", 1), 1);
    run();
    assert_string_equal(trace, ".p..");
    loop_mod(loop, &p.w, EPOLLIN);
    run();
    assert_string_equal(trace, ".p..p.");
    loop_del(loop, &p.w);
    close(p.w.fd);
    close(p.other_end);
}

/* Two are ready in one turn, and the one that comes first ends the other: it hears nothing any
 * more. */
static void forgotten_in_the_same_turn(void **state)
{
    (void)state;
    struct watched p;
    struct watched q;
    watch(&p, 'p');
    watch(&q, 'q');
    p.kill = &q;
    q.kill = &p;
    int fds[] = {p.w.fd, q.w.fd};
    assert_int_equal(write(p.other_end, "x", 1), 1);
    assert_int_equal(write(q.other_end, "x", 1), 1);
    run();
    assert_int_equal(strlen(trace), 2);
    struct watched *left = p.w.fd < 0 ? &q : &p;
    loop_del(loop, &left->w);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    close(p.other_end);
    close(q.other_end);
}

static void descriptor_that_cannot_be_watched(void **state)
{
    (void)state;
    struct loop_fd w = {.fd = -1, .ready = on_ready};
    unit_fails(loop_add(loop, &w, EPOLLIN), STATUS_INTERNAL, "watching descriptor -1");
}

struct task {
    struct loop_task t;
    char letter;
    struct task *then; /* put off by this one */
    enum loop_phase phase;
};

static void run_task(struct loop_task *t)
{
    struct task *me = LIST_ITEM(t, struct task, t);
    happened(me->letter);
    if (me->then)
        loop_later(loop, me->phase, &me->then->t);
    me->then = NULL;
}

static void init_task(struct task *t, char letter)
{
    *t = (struct task){.t = {.run = run_task}, .letter = letter};
    list_init(&t->t.node);
}

/* What is to be submitted goes first, also when writing brings it up; a task waits once however
 * often it is put off. */
static void phases(void **state)
{
    (void)state;
    struct task submit, flush, second_flush, again, cancelled;
    init_task(&submit, 's');
    init_task(&flush, 'f');
    init_task(&second_flush, 'g');
    init_task(&again, 'r');
    init_task(&cancelled, 'x');
    flush.then = &again;
    flush.phase = LOOP_PHASE_SUBMIT;
    loop_later(loop, LOOP_PHASE_FLUSH, &flush.t);
    loop_later(loop, LOOP_PHASE_FLUSH, &second_flush.t);
    loop_later(loop, LOOP_PHASE_SUBMIT, &submit.t);
    loop_later(loop, LOOP_PHASE_SUBMIT, &submit.t);
    loop_later(loop, LOOP_PHASE_SUBMIT, &cancelled.t);
    loop_task_cancel(&cancelled.t);
    run();
    assert_string_equal(trace, ".sfrg");
}

struct letter {
    struct mail mail; /* first */
    int number;
};

#define LETTERS 2000

static struct letter letters[LETTERS];
static int next_letter;

static void on_mail(struct mail *m)
{
    assert_int_equal(((struct letter *)m)->number, next_letter);
    if (++next_letter == LETTERS)
        loop_stop(loop);
}

typedef void post_fn(struct loop *l, struct mail *first, struct mail *last);

static void post_letters(post_fn *post)
{
    for (int i = 0; i < LETTERS; i++) {
        letters[i] = (struct letter){.mail = {.deliver = on_mail}, .number = i};
        post(loop, &letters[i].mail, &letters[i].mail);
    }
}

static void post_all(void *arg)
{
    (void)arg;
    post_letters(loop_post);
}

static void post_all_as_many(void *arg)
{
    (void)arg;
    post_letters(loop_post_many);
}

static void messages_wake_the_loop(void **state)
{
    (void)state;
    void (*const posts[])(void *) = {post_all, post_all_as_many};
    for (size_t i = 0; i < 2; i++) {
        struct thread *t;
        next_letter = 0;
        unit_succeeds(thread_start("post", posts[i], NULL, &t));
        loop_run(loop);
        thread_join(t);
        assert_int_equal(next_letter, LETTERS);
    }
}

static int turns_between;

static void turn_between(struct mail *m)
{
    (void)m;
    turns_between++;
}

static struct mail between = {.deliver = turn_between};

/* Takes as long as all of them have in a turn. The first one posts what others wait for. */
static void long_letter(struct mail *m)
{
    int number = ((struct letter *)m)->number;
    assert_int_equal(number, next_letter++);
    if (number == 0)
        loop_post(loop, &between, &between);
    if (number == 63)
        assert_int_equal(turns_between, 1);
    time_ns end = clock_now_ns() + TIME_US(100);
    while (clock_now_ns() < end)
        ;
}

/* Of thousands that one posted, few are handled before others have their turn. */
static void others_come_between_many(void **state)
{
    (void)state;
    next_letter = turns_between = 0;
    for (int i = 0; i < 64; i++)
        letters[i] = (struct letter){
            .mail = {.deliver = long_letter, .next = i < 63 ? &letters[i + 1].mail : NULL},
            .number = i};
    loop_post_many(loop, &letters[0].mail, &letters[63].mail);
    run();
    assert_int_equal(next_letter, 64);
}

static void ignore_mail(struct mail *m)
{
    (void)m;
}

/* Posts so many, of which nobody handles one yet. */
static void post_unhandled(int count)
{
    for (int i = 0; i < count; i++) {
        letters[i] = (struct letter){.mail = {.deliver = ignore_mail}};
        loop_post_many(loop, &letters[i].mail, &letters[i].mail);
    }
}

static uint64_t times_blocked(void)
{
    struct thread_usage usage;
    thread_usage(&usage);
    return usage.blocks;
}

static void wait_on_loop(struct mail *m)
{
    (void)m;
    uint64_t before = times_blocked();
    loop_wait_for_room(loop);
    assert_int_equal(times_blocked(), before);
}

/* Whoever posts more than the loop handles waits, but not for ever. The loop itself does not. */
static void who_posts_too_much_waits(void **state)
{
    (void)state;
    struct mail on_loop = {.deliver = wait_on_loop};
    loop_post(loop, &on_loop, &on_loop);
    post_unhandled(BACKLOG_MOST + 1);
    time_ns begun = clock_now_ns();
    loop_wait_for_room(loop);
    assert_true(clock_now_ns() - begun >= BACKLOG_LONGEST);
    run();
    uint64_t before = times_blocked();
    loop_wait_for_room(loop);
    assert_int_equal(times_blocked(), before);
}

static void note_mail(struct mail *m)
{
    (void)m;
    happened('m');
}

static void stop_before_run_and_late_mail(void **state)
{
    (void)state;
    struct mail m = {.deliver = note_mail};
    struct loop *other;
    unit_succeeds(loop_new(&other));
    loop_stop(other);
    loop_run(other);
    loop_post(other, &m, &m);
    assert_string_equal(trace, "");
    loop_free(other);
    assert_string_equal(trace, "m");
    loop_free(NULL);
}

#define LOOP_UNIT(fn) cmocka_unit_test_setup_teardown(fn, make, end)
UNIT_MAIN(LOOP_UNIT(timers_in_order), LOOP_UNIT(timer_ahead), LOOP_UNIT(descriptors),
          LOOP_UNIT(forgotten_in_the_same_turn), LOOP_UNIT(descriptor_that_cannot_be_watched),
          LOOP_UNIT(phases), LOOP_UNIT(messages_wake_the_loop), LOOP_UNIT(others_come_between_many),
          LOOP_UNIT(who_posts_too_much_waits), LOOP_UNIT(stop_before_run_and_late_mail))
