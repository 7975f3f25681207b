#pragma once
/* The backend of the simulated models: what it does with a request is drawn. */
#include "plugin/backend.h"
#include "shell/world.h"

/* An instance of it. */
struct post {
    struct served *served;
    bool executing;
    unsigned run;  /* executions so far */
    unsigned over; /* of them, those that have returned */
};

extern struct plugin_backend backends[2]; /* one that may block, one that may run inline */

/* backend_begin, backend_end - its own thread, which answers what Execute left. */
void backend_begin(void);
void backend_end(void);
