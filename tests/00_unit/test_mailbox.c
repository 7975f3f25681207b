#include "os/mailbox.h"

#include "os/mutex.h"
#include "os/thread.h"
#include "support/unit.h"

#define POSTERS 4
#define EACH    5000

struct letter {
    struct mail mail; /* first */
    int poster;
    int number;
};

static int next_of[POSTERS];
static int delivered;

static void deliver(struct mail *m)
{
    struct letter *l = (struct letter *)m;
    assert_int_equal(l->number, next_of[l->poster]);
    next_of[l->poster]++;
    delivered++;
}

static void reset(void)
{
    delivered = 0;
    for (int i = 0; i < POSTERS; i++)
        next_of[i] = 0;
}

static void in_order(void **state)
{
    (void)state;
    struct mailbox b;
    struct letter l[6];
    reset();
    mailbox_init(&b);
    assert_false(mailbox_deliver(&b));
    for (int i = 0; i < 6; i++)
        l[i] = (struct letter){.mail = {.deliver = deliver}, .number = i};
    assert_false(mailbox_push(&b, &l[0].mail, &l[0].mail));
    l[1].mail.next = &l[2].mail;
    l[2].mail.next = &l[3].mail;
    assert_false(mailbox_push(&b, &l[1].mail, &l[3].mail));
    l[4].mail.next = &l[5].mail;
    assert_false(mailbox_push(&b, &l[4].mail, &l[5].mail));
    assert_true(mailbox_deliver(&b));
    assert_int_equal(delivered, 6);
    assert_false(mailbox_deliver(&b));
}

static void wakes_who_sleeps(void **state)
{
    (void)state;
    struct mailbox b;
    struct letter l[3];
    reset();
    mailbox_init(&b);
    for (int i = 0; i < 3; i++)
        l[i] = (struct letter){.mail = {.deliver = deliver}, .number = i};
    assert_true(mailbox_may_sleep(&b));
    assert_true(mailbox_push(&b, &l[0].mail, &l[0].mail));
    assert_false(mailbox_push(&b, &l[1].mail, &l[1].mail)); /* it was told already */
    mailbox_awake(&b);
    assert_false(mailbox_may_sleep(&b)); /* there is mail */
    assert_true(mailbox_deliver(&b));
    assert_false(mailbox_push(&b, &l[2].mail, &l[2].mail)); /* it does not sleep */
    mailbox_deliver(&b);
    assert_true(mailbox_may_sleep(&b));
    mailbox_awake(&b);
    assert_int_equal(delivered, 3);
}

/* Who handles a few at a time also takes what is posted meanwhile: turning round a stack of
 * thousands at once would keep everybody else waiting. */
static void stack_stays_short(void **state)
{
    (void)state;
    struct mailbox b;
    struct letter l[60];
    reset();
    mailbox_init(&b);
    for (int i = 0; i < 60; i++) {
        l[i] = (struct letter){.mail = {.deliver = deliver}, .number = i};
        mailbox_push(&b, &l[i].mail, &l[i].mail);
        if (i % 20 != 19)
            continue;
        mailbox_deliver_until(&b, 0);
        assert_null(atomic_load(&b.head));
        assert_true(mailbox_waits(&b));
    }
    assert_true(delivered < 60);
    mailbox_deliver_until(&b, TIME_NEVER);
    assert_false(mailbox_waits(&b));
    assert_int_equal(delivered, 60);
}

struct office {
    struct mailbox box;
    struct mutex lock;
    struct mutex_cond wake;
    int woken;
    struct letter letters[POSTERS][EACH];
};

static struct office office;

static void post(void *arg)
{
    int poster = (int)(intptr_t)arg;
    for (int i = 0; i < EACH; i++) {
        struct letter *l = &office.letters[poster][i];
        *l = (struct letter){.mail = {.deliver = deliver}, .poster = poster, .number = i};
        if (!mailbox_push(&office.box, &l->mail, &l->mail))
            continue;
        mutex_lock(&office.lock);
        office.woken++;
        mutex_cond_signal(&office.wake);
        mutex_unlock(&office.lock);
    }
}

/* Sleeps until woken: a wake-up that is lost makes this test hang. */
static void sleep_until_woken(void)
{
    if (mailbox_may_sleep(&office.box)) {
        mutex_lock(&office.lock);
        while (office.woken == 0)
            mutex_cond_wait(&office.wake, &office.lock);
        office.woken--;
        mutex_unlock(&office.lock);
    }
    mailbox_awake(&office.box);
}

static void many_posters(void **state)
{
    (void)state;
    struct thread *threads[POSTERS];
    reset();
    mailbox_init(&office.box);
    mutex_init(&office.lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&office.wake);
    for (int i = 0; i < POSTERS; i++)
        unit_succeeds(thread_start("post", post, (void *)(intptr_t)i, &threads[i]));
    while (delivered < POSTERS * EACH) {
        if (!mailbox_deliver(&office.box))
            sleep_until_woken();
    }
    for (int i = 0; i < POSTERS; i++)
        thread_join(threads[i]);
    assert_false(mailbox_deliver(&office.box));
    mutex_cond_fini(&office.wake);
    mutex_fini(&office.lock);
}

UNIT_MAIN(UNIT(in_order), UNIT(wakes_who_sleeps), UNIT(stack_stays_short), UNIT(many_posters))
