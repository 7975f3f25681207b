#pragma once
/* What becomes of a message by its head alone. Worker's thread only. */
#include <stdint.h>

struct http1_head;
struct http_exchange;
struct http_line;
struct http_route;

/* http_gate_begin - begin the answer to a message of the line.
 * http_gate_begin_refusal - the same for one that no service is asked about: it counts for the
 * route that it was for. */
struct http_exchange *http_gate_begin(struct http_line *l, const struct http1_head *h);
struct http_exchange *http_gate_begin_refusal(struct http_line *l, const struct http1_head *h,
                                              const struct http_route *route);

/* http_gate - find the route of a message, and ask everybody who may refuse it: the guard, and the
 * service. The questions of browsers are answered here.
 * h        the service may change it
 * ret_max  as http_service.admit
 * returns  the exchange with the answer, if it is known already: the body is not needed then;
 *          else NULL */
struct http_exchange *http_gate(struct http_line *l, struct http1_head *h,
                                struct http_route *ret_route, uint64_t *ret_max);
