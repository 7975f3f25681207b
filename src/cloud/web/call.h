#pragma once
/* One request to a store, repeated until it is answered or given up. Blocks; on a crew's thread.
 *
 * Retried after a growing pause (Retry-After makes it longer): no answer, an answer that is
 * incomplete or that `check` refuses, 408, 429 and 5xx. Retried at once, a few times: 3xx and
 * 4xx for which `renew` returns true. Everything else is final, also an exchange that no retry
 * can repair. */
#include "base/err.h"
#include "base/strbuf.h"
#include "os/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cloud_abi;

#define CALL_MAX_HEADERS 24u

/* The most bytes of a header line. */
#define CALL_MAX_LINE_BYTES ((size_t)64 << 10)

/* The settings that all calls to one store share. */
struct call_net {
    const struct cloud_abi *abi;
    time_ns limit;         /* a call is given up after this time without progress */
    const char *ca_file;   /* NULL = the system's */
    atomic_bool cancelled; /* orders nothing: calls in flight only have to see it soon */
    atomic_bool answered;  /* an endpoint that might not exist has answered; orders nothing */
    struct mutex lock;     /* rank LEAF; for waiting only */
    struct mutex_cond wake;
};

void call_net_init(struct call_net *n, const struct cloud_abi *abi, time_ns limit,
                   const char *ca_file);

/* call_net_cancel - every call in flight ends soon, and every later one at once. */
void call_net_cancel(struct call_net *n);
void call_net_fini(struct call_net *n);

/* call_net_wait - wait until a time; returns false if cancelled. */
bool call_net_wait(struct call_net *n, time_ns until);

/* A request as it is sent. */
struct call_request {
    const char *method; /* static */
    struct strbuf url;
    char *headers[CALL_MAX_HEADERS + 1];
    size_t header_count;
    struct strbuf body; /* of a POST */
    bool direct;        /* without a proxy */
    struct err *bad;    /* why it cannot be sent */
};

/* call_header - add "name: value". If it is too long, contains a line break, or is one too many,
 * the request cannot be sent: call_run reports that. */
__attribute__((format(printf, 2, 3))) void call_header(struct call_request *r, const char *fmt,
                                                       ...);

void call_request_fini(struct call_request *r);

struct call_answer {
    int status;
    struct strbuf headers; /* one "name: value\n" per header, names in lower case */
    struct strbuf body;    /* unless the sink took it; of an error only its beginning */
};

/* call_value - the value of a header; false if there is none. Cut to cap - 1 bytes. */
bool call_value(const struct call_answer *a, const char *name, char *ret, size_t cap);

enum call_verdict {
    CALL_FINE,
    CALL_AGAIN,   /* the answer cannot be right */
    CALL_GIVE_UP, /* a retry will not help */
};

struct call {
    const char *what; /* for messages: "listing 's3://bucket/models'" */

    /* Makes the request, again for each attempt; may ask for credentials. */
    struct err *(*build)(void *owner, void *session, struct call_request *r);

    /* Takes the body of a 2xx answer in pieces; false: the attempt has failed. NULL: the body is
     * collected, at most max_body bytes. */
    bool (*sink)(void *owner, const struct call_answer *a, const void *data, size_t len);
    size_t max_body;

    /* Judges a complete 2xx answer; sets *ret_why unless it is fine. NULL: it is always fine. */
    enum call_verdict (*check)(void *owner, const struct call_answer *a, struct err **ret_why);

    /* True if an immediate retry may help after this 3xx or 4xx. NULL: never. */
    bool (*renew)(void *owner, const struct call_answer *a);
    void *owner;

    bool maybe;          /* the endpoint may not exist; if it clearly does not, that is final */
    unsigned most;       /* attempts; 0 = as many as the time allows */
    unsigned silences;   /* attempts that got no answer in time */
    uint32_t connect_ms; /* 0 = the default */
    uint32_t stall_secs; /* likewise: how long an answer may stand still */
    struct call_answer answer;
};

/* call_run - send the request. Errors: NOT_FOUND for 404, and if the endpoint does not exist;
 * UNAVAILABLE if it was given up or cancelled; INVALID_ARG for other 4xx. The message names the
 * URL without its query, the attempt, and the store's message. */
struct err *call_run(struct call_net *n, void *session, struct call *c);
void call_fini(struct call *c);
