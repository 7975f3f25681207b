#pragma once
/* Requests that the process of an isolated model has: numbered, answered exactly once whatever
 * the process says or does. Private to plugin/. */
#include "base/err.h"
#include "os/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct isolate_flights;
struct isolate_session;
struct isolate_wire;
struct request;
struct strbuf;

/* isolate_flight_init - none; isolate_flight_fini - none is left. */
void isolate_flight_init(struct isolate_flights *f);
void isolate_flight_fini(struct isolate_flights *f);

/* isolate_flight_add - a request goes to the process, which has it from here on.
 * offset, bytes  of its inputs in shared memory, given back once it is released; bytes 0 = none
 * returns        its number; 0 when the session is closed: the request is still the caller's
 *                then */
uint64_t isolate_flight_add(struct isolate_session *s, struct request *r, uint64_t offset,
                            uint64_t bytes, time_ns now);

/* isolate_flight_launch - after isolate_flight_add: the caller looks at the request no more;
 * until then nothing happens to it. */
void isolate_flight_launch(struct isolate_session *s, uint64_t id);

/* isolate_flight_record - a record about a request: body starts with its number. Records about
 * one request take effect in the order that they say, whichever threads bring them. Not under a
 * lock.
 * returns  false: it makes no sense */
bool isolate_flight_record(struct isolate_session *s, uint64_t kind, const void *body, size_t len);

/* isolate_flight_fail - answer a request with an error, if the process has not, and forget it. e
 * is borrowed. */
void isolate_flight_fail(struct isolate_session *s, uint64_t id, const struct err *e);

/* isolate_flight_fail_all - the same for all; the session is closed from here on. Returns how
 * many were answered by it. */
uint32_t isolate_flight_fail_all(struct isolate_session *s, const struct err *e);

/* isolate_flight_tick - answer those whose time is over; puts the numbers of those that were
 * cancelled since into `cancelled`. */
void isolate_flight_tick(struct isolate_session *s, time_ns now, struct strbuf *cancelled);

/* isolate_flight_count - how many there are. */
uint32_t isolate_flight_count(struct isolate_session *s);
