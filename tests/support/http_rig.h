#pragma once
/* The HTTP front end on real loops and sockets, with a service for tests:
 *   /later    is answered "later" when somebody asks for /flush, newest first
 *   /later-echo  as /later, with the received body
 *   /flush    "ok"
 *   /large    HTTP_RIG_LARGE bytes of http_rig_large
 *   /fail     404 {"error":"a \"quoted\" reason"}
 *   /quote    400 {"error":the body}
 *   /told     the received body; it counts as an answer about the server
 *   /drop...  takes no body; /refuse... is refused by its head, 400 {"error":"not this one"}
 *   others    the received body */
#include "http/http_shard.h"
#include "net/listener.h"
#include "server/server.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_RIG_WORKERS 2u
#define HTTP_RIG_LARGE   ((size_t)6 << 20)

struct http_rig {
    struct server server;
    struct worker workers[HTTP_RIG_WORKERS];
    struct http_front *front;
    uint16_t port;
};

extern char *http_rig_large;
extern atomic_bool
    http_rig_cancelled; /* a request that was answered had been marked as cancelled */
extern time_ns
    /* patience.ended of the rigs made from here on; at first longer than a test takes */
    http_rig_ended;
extern atomic_bool http_rig_aligned; /* the last large body with a tensor had it on 64 bytes */

/* http_rig_new - start two workers, and a front end on a free port; max_connections as for
 * listener_open. */
struct http_rig *http_rig_new(uint32_t max_connections);

/* http_rig_free - stop the front end at once and end the workers; answers what still waits. */
void http_rig_free(struct http_rig *r);

/* http_rig_dial - a blocking connection to the front end. */
int http_rig_dial(const struct http_rig *r);

/* http_rig_send, http_rig_read - send or read everything; else the test fails. */
void http_rig_send(int fd, const char *text);
void http_rig_read(int fd, char *to, size_t n);

/* http_rig_head - read up to the blank line; returns the status. */
int http_rig_head(int fd, char head[1024]);

/* http_rig_expect - read an answer with this status and body.
 * http_rig_expect_end - the server closes the connection; closes fd too. */
void http_rig_expect(int fd, int status, const char *body);
void http_rig_expect_end(int fd);

/* http_rig_run - call a function on the worker where requests for /later wait; returns its
 * result. */
unsigned http_rig_run(unsigned (*run)(void));

/* Functions for http_rig_run. "First" means the request to /later that has waited longest.
 * http_rig_draining     - true if the worker of the first was told to stop
 * http_rig_asked        - true if the client of the first closed its side and the server asked
 *                         the system whether the client is still there
 * http_rig_in_flight    - number of requests in flight on the connection of the first
 * http_rig_deaf         - true if the server drops what the client of the first still sends
 * http_rig_lane         - the loop's lane of the connection of the first
 * http_rig_count_later  - number of requests that wait
 * http_rig_answer_later - answer them; returns 0 */
unsigned http_rig_draining(void);
unsigned http_rig_asked(void);
unsigned http_rig_in_flight(void);
unsigned http_rig_deaf(void);
unsigned http_rig_lane(void);
unsigned http_rig_count_later(void);
unsigned http_rig_answer_later(void);

/* http_rig_later_conn - the connection of the first. Only in a function for http_rig_run. */
struct http_conn *http_rig_later_conn(void);

/* http_rig_until_empty - wait until every connection is closed. */
void http_rig_until_empty(const struct http_rig *r);
