#pragma once
/* What stands between a port and whoever comes to it. */
#include "os/clock.h"

/* While a front end stops: how long a client may stall in what it has begun, or must take. */
#define DOOR_STALL TIME_S(5)

struct keys;
struct tls;

struct door {
    struct tls *tls;   /* NULL = plain */
    struct keys *keys; /* NULL = none are asked for */
};
