#pragma once
/* A line every ten seconds that says which models still load. */
#include "os/loop.h"

struct server;

#define PROGRESS_NS TIME_S(10)

struct progress {
    struct server *server;
    struct loop_timer timer;
    bool loading; /* some model did when it looked last */
};

/* progress_start - before the loop of the first worker runs; then it lives as long as the loop. */
void progress_start(struct progress *p, struct server *s);
