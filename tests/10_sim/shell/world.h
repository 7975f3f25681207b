#pragma once
/* What a run of the simulation of the shell is made of: models that are served, their backend,
 * loops, and what clients asked; and what has to be true of them. */
#include "infer/request.h"
#include "os/loop.h"
#include "serve/submit.h"
#include "serve/table.h"
#include "serve/version.h"

#include <stdbool.h>
#include <stdint.h>

#define MOST_MODELS 8u
#define MOST_SERVED 64u
#define MOST_ASKS   1024u
#define LOOPS       2u

enum kind { PLAIN, DYNAMIC, DIRECT, OLDEST, ENSEMBLE };

/* A model as it is drawn; its versions come and go. */
struct model {
    char name[4];
    enum kind kind;
    bool decoupled;
    bool iterative;
    bool ordered;
    bool limited;
    bool inline_ok;
    bool halves;     /* its executions are begun by loops */
    bool may_expire; /* requests have time-outs, or the queue has a limit */
    bool rejects;    /* what is over its time-out is refused */
    time_ns delay;
    char *text; /* of its configuration, without instance groups */
    struct served *now;
};

/* One version of it. */
struct served {
    struct model *model;
    struct serve_version *version; /* NULL once it was freed */
    const struct plugin_model *plugin;
    unsigned posts;     /* instances that are there */
    unsigned executing; /* of them, those that execute */
    unsigned held;      /* requests that were executed and not released yet */
    bool changing;      /* its instances are */
    time_ns last_event;
};

/* What a client asks, once. */
struct ask {
    int32_t id; /* of it; not 0 */
    struct model *model;
    struct served *served;   /* NULL: there was nothing to ask */
    struct sim_loop *home;   /* NULL = the C API's */
    struct request *request; /* until it is released */
    uint64_t sequence;
    uint32_t flags;
    uint64_t timeout_us;
    uint64_t priority;
    bool large;
    bool alone; /* nobody else is of its sequence */
    bool gone;  /* its client is, before it is queued */
    bool accepted;
    unsigned ordinal; /* how many were accepted before */
    unsigned starts;  /* of them, those that began a sequence of this id, this one included */
    bool handed;      /* the submitting call is over */
    time_ns handed_at;
    bool cancelled;
    unsigned executions;
    unsigned inside; /* of its requests and steps, those that the backend has */
    struct post *at; /* executes it now */
    unsigned again;  /* how often it was given back */
    bool failing;    /* the backend answers with an error */
    bool sent;       /* the backend has sent its final response, or will send none */
    struct post *sender;
    unsigned sender_run;
    unsigned sender_thread;
    unsigned responses;
    bool answered;
    bool released;
};

/* A loop with what a front end has there. */
struct sim_loop {
    unsigned index;
    struct loop *loop;
    struct thread *thread;
    struct submitter submitter;
    struct table_view view;
    struct loop_task after; /* a turn's submissions */
    time_ns inline_since;   /* when the first execution of its own began whose answers wait */
};

/* What happened in all runs: a simulation in which nothing happens finds nothing. */
struct world_counts {
    unsigned long asks, executions, inline_runs, steps;
    unsigned long begun, finished;
    unsigned long gaps, again, warm, later;
    unsigned long refused, cancelled, unloads, changes;
};

extern struct world_counts world_counts;
extern struct model models[MOST_MODELS];
extern unsigned model_count;
extern struct sim_loop loops[LOOPS];
extern struct serve_table *table;
extern struct limits *limits;
extern struct ask asks[MOST_ASKS];
extern unsigned ask_count;

/* world_begin, world_end - around what a run draws. The end looks whether all was given back. */
void world_begin(void);
void world_end(void);

/* world_at_rest - for steps_begin: whether anything waits that should not. */
void world_at_rest(void);

/* world_load - a version of the model with so many instances. false: it could not be had.
 * world_resize - another number of instances. world_unload - blocks until it is gone.
 * world_publish - what is there now. */
bool world_load(struct model *m, unsigned instances);
void world_resize(struct model *m, unsigned instances);
void world_unload(struct model *m);
void world_publish(void);

/* world_ask - a new ask, not handed over yet; NULL when there were enough. world_alone - it is a
 * whole sequence. */
struct ask *world_ask(struct model *m, struct sim_loop *home);
void world_alone(struct ask *a);

/* world_submit - hand it over: on its loop's thread, or from any thread where it has none. */
void world_submit(struct ask *a);

/* world_cancel - its client is gone; on the same thread. */
void world_cancel(struct ask *a);

/* world_open - asks that are not over. */
unsigned world_open(void);

/* world_loop_after - the turn of the loop in which it was submitted is over: of loops[].after. */
void world_loop_after(struct loop_task *t);

/* world_on_answer - what every ask's request responds with. world_served - whose a model of the
 * backend is. */
void world_on_answer(struct response *r, void *owner);
struct served *world_served(const struct plugin_model *m);

/* What is done with a final answer, on its thread; NULL = nothing. */
extern void (*world_on_end)(const struct ask *a);
