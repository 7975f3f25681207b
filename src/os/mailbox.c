#include "os/mailbox.h"

#include <stddef.h>

#define BETWEEN_LOOKS 8 /* messages that are handled between two looks at the clock */

void mailbox_init(struct mailbox *b)
{
    atomic_init(&b->head, NULL);
    atomic_init(&b->asleep, false);
    b->taken = b->taken_last = NULL;
}

struct mail *mailbox_reverse(struct mail *first)
{
    struct mail *last = NULL;
    while (first) {
        struct mail *next = first->next;
        first->next = last;
        last = first;
        first = next;
    }
    return last;
}

bool mailbox_push(struct mailbox *b, struct mail *first, struct mail *last)
{
    last->next = NULL;
    struct mail *newest = mailbox_reverse(first);
    struct mail *head = atomic_load_explicit(&b->head, memory_order_relaxed);
    do
        first->next = head; /* the oldest links to the earlier messages of the stack */
    while (!atomic_compare_exchange_weak(&b->head, &head, newest));
    /* Sequentially consistent with mailbox_may_sleep: either the owner sees the message, or this
     * thread sees that the owner sleeps. */
    return atomic_load(&b->asleep) && atomic_exchange(&b->asleep, false);
}

/* Takes what was posted so far. Often enough, or else turning round what thousands posted meanwhile
 * takes milliseconds. */
static void mailbox_take(struct mailbox *b)
{
    if (!atomic_load_explicit(&b->head, memory_order_relaxed))
        return;
    struct mail *last = atomic_exchange_explicit(&b->head, NULL, memory_order_acquire);
    struct mail *first = mailbox_reverse(last);
    if (b->taken)
        b->taken_last->next = first;
    else
        b->taken = first;
    b->taken_last = last;
}

/* Handles the oldest message that was taken. */
static void mailbox_deliver_one(struct mailbox *b)
{
    struct mail *m = b->taken;
    b->taken = m->next;
    m->deliver(m);
}

bool mailbox_deliver(struct mailbox *b)
{
    mailbox_take(b);
    if (!b->taken)
        return false;
    while (b->taken)
        mailbox_deliver_one(b);
    return true;
}

unsigned mailbox_deliver_until(struct mailbox *b, time_ns end)
{
    unsigned count = 0;
    do {
        mailbox_take(b);
        for (int i = 0; i < BETWEEN_LOOKS; i++, count++) {
            if (!b->taken)
                return count;
            mailbox_deliver_one(b);
        }
    } while (clock_now_ns() < end);
    return count;
}

bool mailbox_waits(const struct mailbox *b)
{
    return b->taken || atomic_load_explicit(&b->head, memory_order_relaxed);
}

bool mailbox_may_sleep(struct mailbox *b)
{
    atomic_store(&b->asleep, true);
    if (!atomic_load(&b->head))
        return true;
    atomic_store(&b->asleep, false);
    return false;
}

void mailbox_awake(struct mailbox *b)
{
    atomic_store_explicit(&b->asleep, false, memory_order_relaxed);
}
