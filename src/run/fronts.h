#pragma once
/* A server with its front ends: opened, and stopped in the order in which every accepted request
 * is answered. */
#include "os/clock.h"
#include "run/secure.h"

struct grpc_front;
struct http_front;
struct options;
struct server;
struct thread;

/* Where the interfaces of clouds listen, as in the reference: the services that call them are
 * outside the container. */
#define FRONTS_CLOUDS_ADDRESS "0.0.0.0"

struct fronts {
    struct server *server;
    struct http_front *http; /* NULL = not served; the others too */
    struct grpc_front *grpc;
    struct http_front *metrics;
    struct http_front *openai;
    struct http_front *sagemaker;
    struct http_front *vertex;
    struct secure secure;
};

/* fronts_check - what can be said of the front ends before anything is opened.
 * errors  INVALID_ARG with the option */
struct err *fronts_check(const struct options *o);

/* fronts_open - open the front ends of a server whose workers run. Models are loaded after that
 * (fronts_load).
 * f       zeroed but for the server; after an error, too, fronts_end frees what was opened
 * errors  those of opening them, with the option */
struct err *fronts_open(struct fronts *f);

/* fronts_load - server_load, what the front ends wait for to be loaded, and server_serve.
 * errors  also of a front end that has no model to serve */
struct err *fronts_load(struct fronts *f);

/* fronts_end - stop readiness, then the front ends, then the models; the server may be freed
 * after it. Blocks.
 * starter  the thread that loads the models, which is joined; NULL = there is none
 * until    when it should have ended: shortly before, requests are cut that are still under way
 * returns  how many were cut */
unsigned fronts_end(struct fronts *f, struct thread *starter, time_ns until);
