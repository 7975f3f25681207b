#pragma once
/* Logs once a second what a stopping server waits for, in the reference's words, which people
 * look for. A separate thread writes the lines, because the thread that stops the server is
 * waiting. */
#include "os/clock.h"
#include "os/mutex.h"

#include <stdbool.h>

struct grpc_front;
struct http_front;
struct repo;
struct thread;

struct countdown {
    struct repo *repo;
    struct http_front *http; /* NULL = no HTTP front end */
    struct grpc_front *grpc; /* NULL = no gRPC front end */
    time_ns until;           /* when stopping must have ended */
    time_ns next;            /* when the next line is due */
    struct mutex lock;       /* rank LEAF; guards the fields below */
    struct mutex_cond changed;
    bool unloading;
    bool over;
    /* NULL = it could not be started: only the lines between the phases are logged */
    struct thread *thread;
};

/* countdown_begin - from now on the server waits for requests in flight.
 * repo, http, grpc  borrowed until countdown_end */
void countdown_begin(struct countdown *c, struct repo *repo, struct http_front *http,
                     struct grpc_front *grpc, time_ns until);

/* countdown_unload - from now on the server waits for models. */
void countdown_unload(struct countdown *c);

/* countdown_end - the server waits for nothing any more. */
void countdown_end(struct countdown *c);
