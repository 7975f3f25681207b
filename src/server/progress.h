#pragma once
/* Logs every ten seconds which models are still loading, or which repositories the start waits
 * for. */
#include "os/loop.h"

struct server;

#define PROGRESS_NS TIME_S(10)

struct progress {
    struct server *server;
    struct loop_timer timer;
    bool loading; /* a model was loading at the last look */
};

/* progress_start - call it before the loop of the first worker runs; p must live as long as the
 * loop. */
void progress_start(struct progress *p, struct server *s);
