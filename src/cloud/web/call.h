#pragma once
/* One request to a store, tried until it is answered or given up. Blocks; on a crew's thread.
 *
 * Tried again: no answer, an answer that breaks off or that `check` refuses, 408, 429 and 5xx,
 * after a pause that grows and that Retry-After lengthens. Tried again at once, a few times: 3xx
 * and 4xx that `renew` has a remedy for. Everything else is final, and so is an exchange that no
 * attempt can bring to another end. */
#include "base/err.h"
#include "base/strbuf.h"
#include "os/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cloud_abi;

#define CALL_MAX_HEADERS 24u

/* The most bytes of a header's line. */
#define CALL_MAX_LINE_BYTES ((size_t)64 << 10)

/* What all calls to one store share. */
struct call_net {
    const struct cloud_abi *abi;
    time_ns limit;         /* without progress for so long, a call is given up */
    const char *ca_file;   /* NULL = the system's */
    atomic_bool cancelled; /* no order: calls under way only have to see it soon */
    atomic_bool answered;  /* somebody was there of whom that was not sure; no order */
    struct mutex lock;     /* rank LEAF; for waiting, guards nothing else */
    struct mutex_cond wake;
};

void call_net_init(struct call_net *n, const struct cloud_abi *abi, time_ns limit,
                   const char *ca_file);

/* call_net_cancel - every call under way ends soon, and so does every later one. */
void call_net_cancel(struct call_net *n);
void call_net_fini(struct call_net *n);

/* call_net_wait - until a time, or cancelled; false when cancelled. */
bool call_net_wait(struct call_net *n, time_ns until);

/* A request as it is sent. */
struct call_request {
    const char *method; /* static */
    struct strbuf url;
    char *headers[CALL_MAX_HEADERS + 1];
    size_t header_count;
    struct strbuf body; /* of a POST */
    bool direct;        /* past any proxy */
    struct err *bad;    /* why it cannot be sent */
};

/* call_header - add "name: value". One that is too long or holds a line's end, or one too many,
 * makes the request one that cannot be sent: call_run says so. */
__attribute__((format(printf, 2, 3))) void call_header(struct call_request *r, const char *fmt,
                                                       ...);

void call_request_fini(struct call_request *r);

struct call_answer {
    int status;
    struct strbuf headers; /* "name: value\n" each, names in lower case */
    struct strbuf body;    /* unless the sink took it; of an error its beginning */
};

/* call_value - a header's value; false when there is none. Cut to cap - 1 bytes. */
bool call_value(const struct call_answer *a, const char *name, char *ret, size_t cap);

enum call_verdict {
    CALL_FINE,
    CALL_AGAIN,   /* what was answered cannot be right */
    CALL_GIVE_UP, /* it will not get better */
};

struct call {
    const char *what; /* "listing 's3://bucket/models'": for messages */

    /* Makes the request, each attempt anew; may itself ask for credentials. */
    struct err *(*build)(void *owner, void *session, struct call_request *r);

    /* Takes the body of a 2xx in pieces; false: the attempt has failed. NULL: it is collected,
     * at most max_body bytes. */
    bool (*sink)(void *owner, const struct call_answer *a, const void *data, size_t len);
    size_t max_body;

    /* Judges a complete 2xx; *ret_why unless it is fine. NULL: it is fine. */
    enum call_verdict (*check)(void *owner, const struct call_answer *a, struct err **ret_why);

    /* Whether trying again at once may help after this 3xx or 4xx. NULL: never. */
    bool (*renew)(void *owner, const struct call_answer *a);
    void *owner;

    bool maybe;          /* nobody may be there: final once that is plain */
    unsigned most;       /* attempts; 0 = as many as the time allows */
    unsigned silences;   /* attempts that no connection came of */
    uint32_t connect_ms; /* 0 = the usual */
    struct call_answer answer;
};

/* call_run - errors NOT_FOUND for 404, and where nobody is of whom that was not sure;
 * UNAVAILABLE when it was given up or cancelled; INVALID_ARG for other 4xx. The message names
 * the URL without its query, the attempt, and what the store said. */
struct err *call_run(struct call_net *n, void *session, struct call *c);
void call_fini(struct call *c);
