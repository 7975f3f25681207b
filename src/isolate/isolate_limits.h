#pragma once
/* How long the process of an isolated model may take, and what is to be done while it works. On
 * the supervisor's thread. */
#include "os/clock.h"

#include <stdbool.h>

struct isolate;
struct isolate_session;

/* Between two looks while there is something to watch. */
#define ISOLATE_LIMITS_TICK TIME_MS(50)

/* isolate_limits_over - whether the process is to be ended: it broke the protocol, was silent
 * for too long, or an execution takes too long. The last two are logged. */
bool isolate_limits_over(struct isolate *iso, struct isolate_session *s, time_ns now);

/* isolate_limits_look - tell it what was cancelled, give back memory that it does not need.
 * returns  when to look again; TIME_NEVER = when told to */
time_ns isolate_limits_look(struct isolate *iso, struct isolate_session *s, time_ns now);
