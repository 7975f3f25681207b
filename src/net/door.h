#pragma once
/* What stands between a port and whoever comes to it. */

struct keys;
struct tls;

struct door {
    struct tls *tls;   /* NULL = plain */
    struct keys *keys; /* NULL = none are asked for */
};
