#pragma once
/* What a server that stops waits for, told once a second in the reference's words: people look
 * for these lines. They are written by a thread of their own, since whoever stops the server
 * waits for what they tell of. */
#include "os/clock.h"
#include "os/mutex.h"

#include <stdbool.h>

struct http_front;
struct repo;
struct thread;

struct countdown {
    struct repo *repo;
    struct http_front *http; /* NULL = there is none */
    time_ns until;           /* when stopping must be over */
    time_ns next;            /* when the next line is due */
    struct mutex lock;       /* rank LEAF; guards what follows */
    struct mutex_cond changed;
    bool unloading;
    bool over;
    /* NULL = there was none to have: only the lines between the phases are told */
    struct thread *thread;
};

/* countdown_begin - requests under way are waited for from now on.
 * repo, http  borrowed until countdown_end */
void countdown_begin(struct countdown *c, struct repo *repo, struct http_front *http,
                     time_ns until);

/* countdown_unload - models are waited for from now on. */
void countdown_unload(struct countdown *c);

/* countdown_end - nothing is waited for any more. */
void countdown_end(struct countdown *c);
