#pragma once
/* Messages to one thread from any other: an intrusive stack that posters push to and the owner
 * empties as a whole. Lock free; order of posting is kept per poster. */
#include <stdatomic.h>
#include <stdbool.h>

struct mail {
    struct mail *next;
    void (*deliver)(struct mail *m); /* runs on the owner's thread; may free m */
};

struct mailbox {
    _Atomic(struct mail *) head; /* newest first; a push releases, the owner's exchange acquires */
    atomic_bool asleep; /* the owner is about to block; whoever clears it must wake the owner */
};

void mailbox_init(struct mailbox *b);

/* mailbox_push - post messages first..last, linked by next, oldest first. Returns true when the
 * caller must wake the owner. */
bool mailbox_push(struct mailbox *b, struct mail *first, struct mail *last);

/* mailbox_deliver - run every message posted so far, oldest first; returns whether there was
 * any. Owner only. */
bool mailbox_deliver(struct mailbox *b);

/* mailbox_may_sleep - say that the owner will block. false: a message came, do not block. Owner
 * only; call mailbox_awake after. */
bool mailbox_may_sleep(struct mailbox *b);
void mailbox_awake(struct mailbox *b);
