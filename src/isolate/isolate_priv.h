#pragma once
/* The objects of the parent's side of an isolated model. Private to isolate/. */
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "os/loop.h"
#include "os/mutex.h"
#include "os/process/spawn.h"
#include "plugin/backend.h"
#include "isolate/wire/isolate_frame.h"
#include "isolate/wire/isolate_message.h"
#include "isolate/wire/isolate_quota.h"
#include "isolate/wire/isolate_settings.h"
#include "isolate/wire/isolate_wire.h"

#include <stdatomic.h>

struct isolate_flight;
struct isolate_pool;
struct plugin_instance;
struct plugin_model;
struct request;
struct stats;
struct thread;

/* One socket with a thread of the child at its other end. */
struct isolate_lane {
    struct list node;
    int fd;
    struct isolate_frame frame; /* of whoever gives orders */
    struct strbuf out;
};

struct isolate_flights {
    struct mutex lock; /* rank THREAD; guards all that follows */
    struct isolate_flight **items;
    uint32_t *generations;
    uint32_t cap;
    uint32_t count;
    uint32_t hint; /* below it nothing is free */
    bool closed;   /* the process is gone: nothing is added any more */
};

/* One life of the child process. */
struct isolate_session {
    atomic_uint refs; /* its owner, callers in an order, and every output that lies in its memory */
    const char *model; /* how messages name it; the owner's, valid while it lives */
    struct spawn process;
    int control_fd;
    int log_fd;
    int in_fd;
    int out_fd;
    uint8_t *in; /* inputs, from us */
    /* ISOLATE_SLOTS bytes, each set to 1 by us when its output is done with, then outputs */
    uint8_t *out;
    size_t shared_bytes;       /* of in, and of out behind the slots */
    struct isolate_pool *pool; /* places in `in` */
    struct isolate_lane setup;
    struct mutex lanes_lock; /* rank LEAF; guards lanes */
    struct list lanes;
    struct isolate_flights flights;
    struct isolate_quota quota;
    struct stats *stats;
    uint32_t most_rows; /* of a batch, as statistics count it */
    bool configured;    /* it knows the published configuration; of whoever has the setup lane */
    _Atomic(time_ns) heard; /* when it said something last; relaxed */
    atomic_uint executed;   /* orders that were answered; relaxed */
    atomic_bool doomed; /* it broke the protocol; the supervisor ends it. relaxed, a post follows */
};

enum isolate_state {
    ISOLATE_LOADING, /* for the first time: whoever loads the model gives the orders */
    ISOLATE_UP,
    ISOLATE_RESTARTING, /* a new process loads */
    ISOLATE_DOWN,       /* none runs: until the next is started, or for good */
};

struct isolate_instance {
    struct list node;
    struct isolate *owner;
    struct plugin_instance *instance;
    struct isolate_lane *lane;      /* of the session that runs; guarded by owner->lock */
    struct isolate_lane *next_lane; /* of the one that loads; the loading thread's */
    uint64_t *batch; /* numbers of the requests it executes; the executing thread's */
    size_t batch_cap;
    _Atomic(time_ns) begun; /* its Execute; 0 = none. relaxed: the supervisor may look late */
};

struct isolate {
    struct plugin_backend backend; /* what the model is told to be of */
    char *model;                   /* "model 'x' version 1" */
    char *name;
    char *model_dir;
    int64_t version;
    char *program;
    struct isolate_settings settings;
    struct strbuf hello; /* what each process is told first */
    char *written;       /* the configuration that the backend is asked to complete */
    bool auto_complete;
    struct plugin_model *plugin_model;
    struct stats *stats;
    uint32_t most_rows; /* of a batch, as statistics count it */

    /* The supervisor's thread alone. */
    struct loop *loop;
    struct thread *supervisor;
    struct thread *restarter;
    struct loop_fd control;
    struct loop_fd log;
    struct loop_fd end;
    struct loop_timer tick;
    struct loop_timer restart;
    struct isolate_frame frame;
    struct log_site said; /* lines of its processes */
    time_ns trimmed;
    unsigned seen; /* of session->executed */

    struct mutex lock; /* rank MODEL; guards what follows */
    struct mutex_cond changed;
    enum isolate_state state;
    /* a reference; NULL while there is no process; the supervisor writes it */
    struct isolate_session *session;
    struct list instances;
    char *last_end;     /* how the last process ended; "" */
    time_ns wait_until; /* orders wait so long for the next process */
    unsigned failures;  /* lives in a row that executed nothing */
    bool initialized;   /* the model was: a process that ends is followed by another */
    bool orderly;       /* the process was told to end */
    bool stopping;
    bool setup_busy; /* some thread gives orders on the setup lane */
    bool reloading;  /* a thread loads the next process: instances neither come nor go */

    /* Relaxed, but for exchanges: each only says something to look at. */
    atomic_bool ready;
    atomic_bool ticking;      /* the supervisor looks again by itself */
    _Atomic(time_ns) retired; /* since when nothing new comes; 0 = not */
    _Atomic(time_ns) kill_at; /* 0 = not */
    struct mail start_mail;
    struct mail tick_mail;
    atomic_bool tick_posted;
};
