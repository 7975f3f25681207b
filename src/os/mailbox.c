#include "os/mailbox.h"

#include <stddef.h>

void mailbox_init(struct mailbox *b)
{
    atomic_init(&b->head, NULL);
    atomic_init(&b->asleep, false);
}

/* Links first..last (oldest first) the other way round, newest first; the last one then links to
 * the earlier messages of the stack. */
static struct mail *reverse(struct mail *first, struct mail **ret_oldest)
{
    struct mail *newest = NULL;
    *ret_oldest = first;
    while (first) {
        struct mail *next = first->next;
        first->next = newest;
        newest = first;
        first = next;
    }
    return newest;
}

bool mailbox_push(struct mailbox *b, struct mail *first, struct mail *last)
{
    last->next = NULL;
    struct mail *oldest;
    struct mail *newest = reverse(first, &oldest);
    struct mail *head = atomic_load_explicit(&b->head, memory_order_relaxed);
    do
        oldest->next = head;
    while (!atomic_compare_exchange_weak(&b->head, &head, newest));
    /* Sequentially consistent with mailbox_may_sleep: either the owner sees the message, or this
     * thread sees that the owner sleeps. */
    return atomic_load(&b->asleep) && atomic_exchange(&b->asleep, false);
}

bool mailbox_deliver(struct mailbox *b)
{
    if (!atomic_load_explicit(&b->head, memory_order_relaxed))
        return false;
    struct mail *newest = atomic_exchange_explicit(&b->head, NULL, memory_order_acquire);
    struct mail *ignored;
    struct mail *m = reverse(newest, &ignored);
    while (m) {
        struct mail *next = m->next;
        m->deliver(m);
        m = next;
    }
    return true;
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
