#pragma once
/* What every loop does once a second: give memory back that was not used lately. */
#include "os/loop.h"

struct worker;

struct housekeeping {
    struct worker *worker;
    struct loop_timer timer;
    bool warm; /* buffers were kept warm a second ago */
};

/* housekeeping_start - before the worker's loop runs. */
void housekeeping_start(struct worker *w);
