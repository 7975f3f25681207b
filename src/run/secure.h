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
    struct door clouds; /* keys only: their services speak plain HTTP to containers */
};

/* secure_asked - true if a front end may use TLS; then SIGHUP makes the server read the files
 * again. */
bool secure_asked(const struct options *o);

/* secure_open - read the files for all front ends that will be opened.
 * o       borrowed until secure_close
 * errors  those of tls_new and keys_new */
struct err *secure_open(struct secure *s, const struct options *o);

/* secure_next - the time of the next check of the files; TIME_NEVER without TLS.
 * secure_look - check the files now. now: read them again even if they look unchanged */
time_ns secure_next(const struct secure *s);
void secure_look(const struct secure *s, bool now);

/* secure_close - free everything; the front ends must be closed before. */
void secure_close(struct secure *s);
