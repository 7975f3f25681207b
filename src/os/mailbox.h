#pragma once
/* Messages from any thread to one thread: an intrusive stack. Senders push; the owner takes all
 * at once. Lock free. The order of each sender's messages is kept. */
#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>

struct mail {
    struct mail *next;
    void (*deliver)(struct mail *m); /* runs on the owner's thread; may free m */
};

struct mailbox {
    _Atomic(struct mail *) head; /* newest first; a push releases, the owner's exchange acquires */
    /* the owner is about to block; the thread that clears it must wake the owner */
    atomic_bool asleep;
    /* the owner's: taken from the stack, not handled yet, oldest first */
    struct mail *taken, *taken_last;
};

void mailbox_init(struct mailbox *b);

/* mailbox_reverse - link messages the other way round, up to the one whose next is NULL. Returns
 * that one; NULL stays NULL. */
struct mail *mailbox_reverse(struct mail *first);

/* mailbox_push - post messages first..last, linked by next, oldest first. Returns true if the
 * caller must wake the owner. */
bool mailbox_push(struct mailbox *b, struct mail *first, struct mail *last);

/* mailbox_deliver - handle every message posted so far, oldest first. Returns true if there was
 * one. Owner only. */
bool mailbox_deliver(struct mailbox *b);

/* mailbox_deliver_until - handle messages, oldest first, until there are none or this time has
 * come; a few at least. Returns how many. Owner only.
 * mailbox_waits - true if there are messages. Owner only. */
unsigned mailbox_deliver_until(struct mailbox *b, time_ns end);
bool mailbox_waits(const struct mailbox *b);

/* mailbox_may_sleep - the owner wants to block. Returns false if a message came, so that it must
 * not block. Owner only; call mailbox_awake afterwards. */
bool mailbox_may_sleep(struct mailbox *b);
void mailbox_awake(struct mailbox *b);
