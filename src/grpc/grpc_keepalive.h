#pragma once
/* When a gRPC connection is pinged, sent away for pinging too often, or ended for its age; as
 * libraries of gRPC do it. Pure: time is a parameter. */
#include "os/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct options;

/* The same for every connection of a front. TIME_NEVER = not at all. */
struct grpc_keepalive_rules {
    time_ns silence;       /* before a ping */
    time_ns answer_within; /* of a ping */
    time_ns age;           /* at which a connection is told to end, */
    time_ns grace;         /* and how long its calls may go on then */
    time_ns min_interval;  /* between pings of a client without data in between */
    uint32_t max_pings;    /* of ours in a row without data in between; 0 = any number */
    uint32_t max_strikes;  /* pings of a client that came too soon; 0 = any number */
    bool without_calls;    /* ping, and be pinged, also where there is no call */
};

/* A connection's share. */
struct grpc_keepalive {
    time_ns heard;      /* when bytes last came */
    time_ns pinged;     /* when a ping went out that waits for its answer; 0 = none does */
    time_ns was_pinged; /* when the client's last ping came; 0 = data went out since */
    time_ns end;        /* when its age, then its grace, is over; TIME_NEVER = never */
    uint32_t pings;     /* that went out without data in between */
    uint32_t strikes;
    bool retired; /* told to end */
};

enum grpc_keepalive_action {
    GRPC_KEEPALIVE_WAIT,
    GRPC_KEEPALIVE_PING,   /* send one */
    GRPC_KEEPALIVE_DEAD,   /* close: it does not answer */
    GRPC_KEEPALIVE_RETIRE, /* tell the client to open no more calls */
    GRPC_KEEPALIVE_CUT,    /* close: its grace is over */
};

void grpc_keepalive_rules(const struct options *o, struct grpc_keepalive_rules *ret);

/* grpc_keepalive_init - a fresh connection. random spreads the ages by a tenth. */
void grpc_keepalive_init(struct grpc_keepalive *k, const struct grpc_keepalive_rules *r,
                         time_ns now, uint64_t random);

/* grpc_keepalive_due - what is to be done now; call again at *ret_next (TIME_NEVER = never).
 * calls  the connection has some */
enum grpc_keepalive_action grpc_keepalive_due(struct grpc_keepalive *k,
                                              const struct grpc_keepalive_rules *r, time_ns now,
                                              bool calls, time_ns *ret_next);

/* grpc_keepalive_was_pinged - the client sent a ping; false when that was one too many. */
bool grpc_keepalive_was_pinged(struct grpc_keepalive *k, const struct grpc_keepalive_rules *r,
                               time_ns now, bool calls);

/* grpc_keepalive_heard - bytes came. */
static inline void grpc_keepalive_heard(struct grpc_keepalive *k, time_ns now)
{
    k->heard = now;
    k->pinged = 0;
}

/* grpc_keepalive_sent - a frame with headers or data went out. */
static inline void grpc_keepalive_sent(struct grpc_keepalive *k)
{
    k->was_pinged = 0;
    k->pings = 0;
    k->strikes = 0;
}
