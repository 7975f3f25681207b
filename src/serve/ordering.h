#pragma once
/* A wrapper around a scheduler: responses leave in the order of arrival (preserve_ordering). */
#include "serve/scheduler.h"

/* What gives a request its place in the order: being queued, or being taken from the queue. */
enum ordering_place {
    ORDERING_BY_PUSH,
    ORDERING_BY_TAKE,
};

/* ordering_wrap - put the wrapper around a scheduler that is being made. */
void ordering_wrap(struct scheduler *s, enum ordering_place place);
