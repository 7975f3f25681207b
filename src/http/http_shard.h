#pragma once
/* Types shared by the files of the HTTP front end: the front end, and its part on each worker. */
#include "base/list.h"
#include "http/http_front.h"
#include "http/http_out.h"
#include "http/http_service.h"
#include "metrics/front_metrics.h"
#include "net/guard.h"
#include "net/tls/tls_conn.h"
#include "os/mailbox.h"
#include "os/mutex.h"

#include <stdbool.h>
#include <stdint.h>

struct forward;
struct helpers;
struct listener;
struct worker;
struct h2_batch;
struct nghttp2_option;
struct nghttp2_session_callbacks;

/* If at most this many connections of a worker send chunks at the same time, they are treated
 * like all others. */
#define HTTP_CHUNKED_FEW 4u

/* The part of a front end on one worker; only the worker's thread uses it, except for the
 * messages. */
struct http_shard {
    struct http_front *front;
    struct worker *worker;
    struct list conns;
    struct front_metrics *metrics;
    struct http_out out;
    struct h2_batch *batch; /* of HTTP/2; NULL until first used */
    struct tls_home tls;
    char *json_memory;  /* memory for parsing small texts; NULL until first used */
    uint32_t strangers; /* turns.h */
    /* the connections on which chunks came last, latest first */
    uintptr_t chunked[HTTP_CHUNKED_FEW];
    bool draining; /* stopping: connections close after their answers */
    struct mail drain_mail;
    struct mail kill_mail;
};

/* How long a connection may stay without progress. */
struct http_patience {
    time_ns head;     /* from the first byte of a head to the last */
    time_ns stall;    /* without a byte of a body or of an answer */
    time_ns idle;     /* between requests */
    time_ns shortest; /* the shortest of these */
    /* from the end of the client's side until the client is asked whether it is still there */
    time_ns ended;
};

/* http_front_patience - make it from seconds; each is at least 1. */
struct http_patience http_front_patience(uint32_t head, uint32_t stall, uint32_t idle);

struct http_front {
    struct server *server;
    struct http_patience patience;
    const struct http_service *service;
    void *own; /* what the service made for itself; NULL = nothing */
    struct listener *listener;
    struct http_shard *shards; /* one per worker */
    struct forward *forward;   /* forwards headers as parameters; NULL = none */
    struct guard guard;
    struct http_cors *cors; /* what pages of other origins may do; NULL = nothing */
    bool collect;           /* all headers are needed */
    struct nghttp2_session_callbacks *h2_callbacks; /* http_front_init_h2 */
    struct nghttp2_option *h2_options;
    struct helpers *helpers; /* for large compressed messages */
    /* rank LEAF; `settled` is signalled when a connection or a shard's message is gone */
    struct mutex lock;
    struct mutex_cond settled;
    unsigned mails; /* messages to shards in flight; guarded by lock */
    unsigned cut;   /* requests that were cut; guarded by lock */
    bool stopped;
};

/* http_front_init_h2 - make what all sessions of HTTP/2 share. */
struct err *http_front_init_h2(struct http_front *f);

/* http_front_gone - a connection of the shard was closed and freed. */
void http_front_gone(struct http_shard *s);
