#pragma once
/* What a server does every second on one of its loops: give memory back that nobody used lately. */
#include "os/loop.h"

struct housekeeping {
    struct loop *loop;
    struct loop_timer timer;
};

/* housekeeping_start - before the loop runs. */
void housekeeping_start(struct housekeeping *h, struct loop *loop);
