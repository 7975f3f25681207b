#pragma once
/* Decides when a gRPC connection is pinged, closed because it pings too often, or ended for its
 * age; as gRPC libraries do. Pure: time is a parameter. */
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct options;

/* The settings of all connections of a front end. TIME_NEVER = never. */
struct grpc_keepalive_rules {
    time_ns silence;       /* time without bytes before a ping */
    time_ns answer_within; /* time limit for the answer to a ping */
    time_ns age;           /* the age at which a client is told to open no more calls */
    time_ns grace;         /* how long its calls may continue then */
    time_ns min_interval;  /* minimum between pings of a client without data in between */
    uint32_t max_pings;    /* of the server's pings without data in between; 0 = no limit */
    uint32_t max_strikes;  /* of client pings that came too early; 0 = no limit */
    bool without_calls;    /* send and accept pings also without calls */
};

/* The state of one connection. */
struct grpc_keepalive {
    time_ns heard;      /* when bytes last came */
    time_ns pinged;     /* when a ping was sent that is not answered yet; 0 = none */
    time_ns was_pinged; /* when the client's last ping came; 0 = data was sent since */
    time_ns end;        /* the end of its age, then of its grace time; TIME_NEVER = none */
    uint32_t pings;     /* pings sent without data in between */
    uint32_t strikes;
    bool retired; /* the client was told to open no more calls */
};

enum grpc_keepalive_action {
    GRPC_KEEPALIVE_WAIT,
    GRPC_KEEPALIVE_PING,   /* send one */
    GRPC_KEEPALIVE_DEAD,   /* close: the client does not answer */
    GRPC_KEEPALIVE_RETIRE, /* tell the client to open no more calls */
    GRPC_KEEPALIVE_CUT,    /* close: its grace time is over */
};

void grpc_keepalive_rules(const struct options *o, struct grpc_keepalive_rules *ret);

/* grpc_keepalive_init - begin with a new connection. random varies the age by a tenth. */
void grpc_keepalive_init(struct grpc_keepalive *k, const struct grpc_keepalive_rules *r,
                         time_ns now, uint64_t random);

/* grpc_keepalive_due - what to do now; call it again at *ret_next (TIME_NEVER = never).
 * calls  the connection has calls */
enum grpc_keepalive_action grpc_keepalive_due(struct grpc_keepalive *k,
                                              const struct grpc_keepalive_rules *r, time_ns now,
                                              bool calls, time_ns *ret_next);

/* grpc_keepalive_was_pinged - the client sent a ping. Returns false if that was one too many. */
bool grpc_keepalive_was_pinged(struct grpc_keepalive *k, const struct grpc_keepalive_rules *r,
                               time_ns now, bool calls);

/* grpc_keepalive_heard - bytes came. */
static inline void grpc_keepalive_heard(struct grpc_keepalive *k, time_ns now)
{
    k->heard = now;
    k->pinged = 0;
}

/* grpc_keepalive_sent - a frame with headers or data was sent. */
static inline void grpc_keepalive_sent(struct grpc_keepalive *k)
{
    k->was_pinged = 0;
    k->pings = 0;
    k->strikes = 0;
}
