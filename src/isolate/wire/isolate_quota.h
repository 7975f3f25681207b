#pragma once
/* Limits what the process of an isolated model can make the server hold: incomplete messages,
 * and records that wait for others. The limit is a share of the budget, and what is held is
 * charged to the budget. Private to isolate/. Any thread. */
#include "os/mutex.h"

#include <stdbool.h>
#include <stddef.h>

/* This much is not charged to the budget, so that a well-behaved process is not refused because
 * others spent the budget. */
#define ISOLATE_QUOTA_FREE ((size_t)256 << 10)

struct isolate_quota {
    struct mutex lock; /* rank LEAF; guards held */
    size_t held;
    size_t most;
};

/* isolate_quota_init - the limit is an eighth of the budget, at least 4 MiB and at most
 * ISOLATE_FRAME_MAX. */
void isolate_quota_init(struct isolate_quota *q);
void isolate_quota_fini(struct isolate_quota *q);

/* isolate_quota_take - hold n more bytes; false if that is above the limit.
 * isolate_quota_give - release n bytes.
 * q may be NULL: no limit. */
bool isolate_quota_take(struct isolate_quota *q, size_t n);
void isolate_quota_give(struct isolate_quota *q, size_t n);
