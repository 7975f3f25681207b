#pragma once
/* The requests in flight in the process of an isolated model. Each has a number and is answered
 * exactly once, whatever the process says or does. Private to isolate/. */
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

/* isolate_flight_init - begin without requests.
 * isolate_flight_fini - free it; no request is left. */
void isolate_flight_init(struct isolate_flights *f);
void isolate_flight_fini(struct isolate_flights *f);

/* isolate_flight_add - a request goes to the process, which owns it from here on.
 * offset, bytes  the place of its inputs in shared memory, given back after its release; bytes 0
 *                = none
 * returns        its number; 0 if the session is closed: the caller still owns the request then */
uint64_t isolate_flight_add(struct isolate_session *s, struct request *r, uint64_t offset,
                            uint64_t bytes, time_ns now);

/* isolate_flight_launch - call it after isolate_flight_add, when the caller no longer uses the
 * request. Nothing happens to the request before that. */
void isolate_flight_launch(struct isolate_session *s, uint64_t id);

/* isolate_flight_record - handle a record about a request; body starts with the request's
 * number. Records about one request are handled in the order of their places, whichever threads
 * bring them. Call it without a lock.
 * returns  false: the record is invalid */
bool isolate_flight_record(struct isolate_session *s, uint64_t kind, const void *body, size_t len);

/* isolate_flight_fail - answer a request with an error, unless the process has answered it, and
 * forget it. e is borrowed. */
void isolate_flight_fail(struct isolate_session *s, uint64_t id, const struct err *e);

/* isolate_flight_fail_all - the same for all requests, and close the session. Returns how many
 * requests this call answered. */
uint32_t isolate_flight_fail_all(struct isolate_session *s, const struct err *e);

/* isolate_flight_tick - answer the requests that have timed out. The numbers of newly cancelled
 * requests are added to `cancelled`. */
void isolate_flight_tick(struct isolate_session *s, time_ns now, struct strbuf *cancelled);

/* isolate_flight_count - the number of requests in flight. */
uint32_t isolate_flight_count(struct isolate_session *s);
