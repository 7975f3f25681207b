#pragma once
/* Answers in the order of arrival (preserve_ordering), around a scheduler. */
#include "serve/scheduler.h"

/* When a request gets its place in the order. */
enum ordering_place {
    ORDERING_BY_PUSH,
    ORDERING_BY_TAKE,
};

/* ordering_wrap - around a scheduler that is being made. */
void ordering_wrap(struct scheduler *s, enum ordering_place place);
