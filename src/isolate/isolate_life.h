#pragma once
/* The supervisor of an isolated model: a thread that starts the process, reads what it says
 * unasked, notices its end, and starts the next. Private to isolate/. */
#include "base/err.h"

#include <stdbool.h>

struct isolate;
struct isolate_instance;
struct isolate_lane;
struct isolate_session;

/* isolate_life_start - the supervisor and the first process. */
struct err *isolate_life_start(struct isolate *iso);

/* isolate_life_stop - the process has ended, or iso->stopping is set and it was ended; the
 * supervisor ends. Blocks. */
void isolate_life_stop(struct isolate *iso);

/* isolate_life_acquire - the process that runs, and the lane of an instance in it; waits a while
 * for one that is being started.
 * inst    NULL = no lane is asked for
 * ret     a reference
 * errors  UNAVAILABLE, naming the model and how the last process ended */
struct err *isolate_life_acquire(struct isolate *iso, const struct isolate_instance *inst,
                                 struct isolate_session **ret, struct isolate_lane **ret_lane);

/* isolate_life_ended - an order was not answered: wait until the end of the process is dealt with.
 * doing    "while it ..."
 * returns  the error for it: INTERNAL, naming the model and how the process ended */
struct err *isolate_life_ended(struct isolate *iso, struct isolate_session *s, const char *doing);

/* isolate_life_look - let the supervisor look at time limits, from now on until there is nothing
 * to watch. Any thread. */
void isolate_life_look(struct isolate *iso);

/* isolate_life_setup_begin, isolate_life_setup_end - around orders on the setup lane. */
void isolate_life_setup_begin(struct isolate *iso);
void isolate_life_setup_end(struct isolate *iso);
