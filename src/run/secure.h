#pragma once
/* Certificates and keys of the front ends, and their files, which the main thread looks at. */
#include "base/err.h"
#include "net/door.h"
#include "os/clock.h"

#include <stdbool.h>

struct options;

struct secure {
    struct door http;
    struct door grpc;
    struct door metrics;
};

/* secure_asked - whether any front end may need it: SIGHUP is waited for. */
bool secure_asked(const struct options *o);

/* secure_open - for the front ends that will be opened.
 * o       borrowed until secure_close
 * errors  those of tls_new and keys_new */
struct err *secure_open(struct secure *s, const struct options *o);

/* secure_next - when to look at the files again. secure_look - do it; now: they are said to have
 * changed. */
time_ns secure_next(const struct secure *s);
void secure_look(const struct secure *s, bool now);

/* secure_close - without front ends. */
void secure_close(struct secure *s);
