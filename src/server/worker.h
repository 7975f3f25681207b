#pragma once
/* A loop thread and what it owns: what a connection needs of the server, without locks. */
#include "os/loop.h"
#include "serve/submit.h"
#include "serve/table.h"

#include <stdatomic.h>

struct server;
struct thread;

struct worker {
    struct server *server;
    unsigned index;
    struct loop *loop;
    struct table_view view;
    struct submitter submitter;
    struct thread *thread;
    atomic_uint connections; /* open ones; read by listeners that choose the least loaded worker */
    /* One receive buffer a loop: connections without a large body under way own none. Bytes are consumed or copied before the
     * next connection reads. */
    char *receive;
    size_t receive_bytes;
};
