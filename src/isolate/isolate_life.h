#pragma once
/* The supervisor of an isolated model: a thread that starts the process, reads its messages,
 * notices its end, and starts the next process. Private to isolate/. */
#include "base/err.h"

#include <stdbool.h>

struct isolate;
struct isolate_instance;
struct isolate_lane;
struct isolate_session;

/* isolate_life_start - start the supervisor and the first process. */
struct err *isolate_life_start(struct isolate *iso);

/* isolate_life_stop - end the supervisor. The process has ended, or iso->stopping is set and the
 * process was ended. Blocks. */
void isolate_life_stop(struct isolate *iso);

/* isolate_life_acquire - the running process, and the lane of an instance in it. If a process is
 * being started, wait for it for a while.
 * inst    NULL = no lane is needed
 * ret     a reference
 * errors  UNAVAILABLE, naming the model and how the last process ended */
struct err *isolate_life_acquire(struct isolate *iso, const struct isolate_instance *inst,
                                 struct isolate_session **ret, struct isolate_lane **ret_lane);

/* isolate_life_ended - an order got no answer: wait until the end of the process was handled.
 * doing    "while it ..."
 * returns  the error: INTERNAL, naming the model and how the process ended */
struct err *isolate_life_ended(struct isolate *iso, struct isolate_session *s, const char *doing);

/* isolate_life_look - let the supervisor check time limits from now on, until there is nothing
 * to watch. Any thread. */
void isolate_life_look(struct isolate *iso);

/* isolate_life_setup_begin, isolate_life_setup_end - call them before and after orders on the
 * setup lane. */
void isolate_life_setup_begin(struct isolate *iso);
void isolate_life_setup_end(struct isolate *iso);
