#pragma once
/* The backend of the simulated models: what it does with a request is drawn. */
#include "plugin/backend.h"
#include "shell/world.h"

/* An instance of it. */
struct post {
    struct served *served;
    bool executing;
    unsigned run;                  /* executions so far */
    unsigned over;                 /* of them, those that have returned */
    int bell;                      /* of what was begun; -1 = nothing is */
    TRITONBACKEND_Request **begun; /* NULL = nothing is */
    uint32_t count;
};

/* One that may block, one that may run inline, one that executes in halves. */
extern struct plugin_backend backends[3];

/* backend_begin, backend_end - its own thread, which answers what Execute left. */
void backend_begin(void);
void backend_end(void);
