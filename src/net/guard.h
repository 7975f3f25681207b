#pragma once
/* Who may use which interface: the one place where every front door asks, with the category that
 * its table gives a route or a method. Two things are asked of a request: the header that a
 * restricted interface wants, and a key where the server has keys. */
#include "net/keys.h"
#include "server/options/options_front.h"

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/* In gRPC the configured header name must have this prefix. */
#define GUARD_GRPC_PREFIX "triton-grpc-protocol-"

/* The most keys of a request that are looked up, because each is compared with every key of the
 * server: one more is one that does not exist. */
#define GUARD_MOST_KEYS 8u

struct guard {
    const struct options_restrictions *restrictions; /* NULL = none */
    const char *prefix; /* of their headers' names: GUARD_GRPC_PREFIX, or "" */
    const char *what;   /* "protocol", or "API" */
    struct keys *keys;  /* NULL = none are asked for */
};

/* What the headers of a request showed; begins with zeros. Of a name that comes several times all
 * have to be right: a proxy in front could have looked at another one. */
struct guard_seen {
    bool right, wrong; /* of the restricted interface */
    unsigned shown;    /* keys, */
    bool unknown;      /* one that does not exist, */
    keys_rights lacks; /* and what one of them does not open */
};

enum guard_answer {
    GUARD_PASS,
    GUARD_RESTRICTED, /* HTTP 403, gRPC UNAVAILABLE: as the reference */
    GUARD_NO_KEY,     /* 401, UNAUTHENTICATED: none, or one that does not exist */
    GUARD_NOT_ITS,    /* 403, PERMISSION_DENIED: the key does not open this category */
};

/* guard_asks - whether anything is asked of any request. */
static inline bool guard_asks(const struct guard *g)
{
    return g->keys || (g->restrictions && g->restrictions->any);
}

/* guard_restricted - whether the category wants a header. guard_watches - whether anything is
 * asked: then each header goes to guard_header. */
static inline bool guard_restricted(const struct guard *g, enum options_category category)
{
    return g->restrictions && g->restrictions->any && category < OPTIONS_CATEGORIES &&
           g->restrictions->of[category].header;
}

static inline bool guard_watches(const struct guard *g, enum options_category category)
{
    return category != OPTIONS_CATEGORY_OPEN && (g->keys || guard_restricted(g, category));
}

/* guard_header - look at a header of the request. Takes as long for a wrong value as for the
 * right one. */
void guard_header(const struct guard *g, enum options_category category, struct guard_seen *seen,
                  const char *name, size_t name_len, const char *value, size_t len);

/* guard_decide - once all headers were looked at. */
enum guard_answer guard_decide(const struct guard *g, enum options_category category,
                               const struct guard_seen *seen);

/* guard_say - why, for the client. */
void guard_say(const struct guard *g, enum options_category category, enum guard_answer answer,
               struct strbuf *to);
