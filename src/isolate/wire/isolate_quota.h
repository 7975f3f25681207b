#pragma once
/* What the process of an isolated model makes the server hold for it: messages that are not
 * complete, records that wait for others. A share of the budget at most, whatever the process
 * sends, and charged to it. Private to isolate/. Any thread. */
#include "os/mutex.h"

#include <stdbool.h>
#include <stddef.h>

/* So much of it is not charged: a process that says what all do is not refused because others
 * spent the budget. */
#define ISOLATE_QUOTA_FREE ((size_t)256 << 10)

struct isolate_quota {
    struct mutex lock; /* rank LEAF; guards held */
    size_t held;
    size_t most;
};

/* isolate_quota_init - an eighth of the budget, at least 4 MiB and at most ISOLATE_FRAME_MAX. */
void isolate_quota_init(struct isolate_quota *q);
void isolate_quota_fini(struct isolate_quota *q);

/* isolate_quota_take - hold n bytes more; false: that is too much. isolate_quota_give - what was
 * taken. q may be NULL: no limit. */
bool isolate_quota_take(struct isolate_quota *q, size_t n);
void isolate_quota_give(struct isolate_quota *q, size_t n);
