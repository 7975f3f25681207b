#pragma once
/* Time limits of the process of an isolated model, and regular work while it runs. Runs on the
 * supervisor's thread. */
#include "os/clock.h"

#include <stdbool.h>

struct isolate;
struct isolate_session;

/* The time between two looks while there is something to watch. */
#define ISOLATE_LIMITS_TICK TIME_MS(50)

/* isolate_limits_over - true if the process must be ended: it broke the protocol, was silent for
 * too long, or an execution takes too long. The last two are logged. */
bool isolate_limits_over(struct isolate *iso, struct isolate_session *s, time_ns now);

/* isolate_limits_look - tell the process which requests were cancelled, and give back memory
 * that it does not need.
 * returns  when to look again; TIME_NEVER = at the next isolate_life_look */
time_ns isolate_limits_look(struct isolate *iso, struct isolate_session *s, time_ns now);
