#pragma once
/* What the files of the HTTP front end share: the front end itself, and its part on each worker. */
#include "base/list.h"
#include "http/http_front.h"
#include "http/http_out.h"
#include "http/http_service.h"
#include "metrics/front_metrics.h"
#include "net/tls/tls_conn.h"
#include "os/mailbox.h"
#include "os/mutex.h"

#include <stdbool.h>
#include <stdint.h>

struct forward;
struct helpers;
struct listener;
struct worker;

/* So many connections of a worker that send chunks at the same time are received as all others. */
#define HTTP_CHUNKED_FEW 4u

/* The front end on one worker; touched by its thread only, but for the messages. */
struct http_shard {
    struct http_front *front;
    struct worker *worker;
    struct list conns;
    struct front_metrics *metrics;
    struct http_out out;
    struct tls_home tls;
    char *json_memory;                   /* for parsing small texts; NULL until first used */
    uint32_t strangers;                  /* turns.h */
    uintptr_t chunked[HTTP_CHUNKED_FEW]; /* where chunks came last, the latest first */
    bool draining;                       /* stopping: answers close their connection */
    struct mail drain_mail;
    struct mail kill_mail;
};

/* How long a connection may keep its place without giving or taking anything. */
struct http_patience {
    time_ns head;     /* from the first byte of a head to its last */
    time_ns stall;    /* without any byte of a body, or of an answer */
    time_ns idle;     /* between requests */
    time_ns shortest; /* of these */
    /* from the end of what the client sends until it is asked whether it is still there */
    time_ns ended;
};

/* http_front_patience - in seconds, each 1 or more. */
struct http_patience http_front_patience(uint32_t head, uint32_t stall, uint32_t idle);

struct http_front {
    struct server *server;
    struct http_patience patience;
    const struct http_service *service;
    struct listener *listener;
    struct http_shard *shards; /* one a worker */
    struct forward *forward;   /* headers that become parameters; NULL = none */
    bool collect;              /* somebody looks at all headers */
    struct helpers *helpers;   /* for large messages that are compressed */
    struct mutex lock; /* rank LEAF; with settled: a connection or a shard's message is gone */
    struct mutex_cond settled;
    unsigned mails; /* messages to shards on their way; under lock */
    bool stopped;
};

/* http_front_gone - a connection of the shard was closed and freed. */
void http_front_gone(struct http_shard *s);
