#pragma once
/* Executions that have a time-out: they run on a thread of ours, which the server's thread leaves
 * behind when the time is over. What a function that hangs has got stays as it is until it returns:
 * its requests are answered with an error then, and released when it returns. */
#include "execute.h"

struct watch;

/* How many calls of one model may be left behind. More requests are refused at once. */
enum { WATCH_MOST_LEFT = 8 };

/* watch_new - for one instance; NULL without memory. */
struct watch *watch_new(void);

/* watch_free - no execution is under way but those that were left behind. NULL is fine. */
void watch_free(struct watch *w);

/* watch_run - as execute_batch; returns when everything is answered, after the model's time-out at
 * the latest. Without the GIL. */
void watch_run(struct watch *w, struct function *f, TRITONBACKEND_ModelInstance *instance,
               TRITONBACKEND_Request **requests, uint32_t count);
