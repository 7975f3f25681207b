#pragma once
/* What a kind of store does in its own way: s3, gcs, azure. cloud/ knows no more of them than
 * this. */
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call_answer;
struct call_net;
struct call_request;
struct listing;
struct listing_object;

struct kind {
    const char *scheme;    /* "s3://" */
    const char *mount_env; /* the variable that says where the cache lies */

    /* Reads the path and the settings; no request yet.
     * path  the repository's; net outlives the result */
    struct err *(*open)(const char *path, struct call_net *net, void **ret);
    void (*close)(void *site);

    /* The request for a page of the objects of a model, or (model NULL) of the whole repository.
     * page  what the page before said; NULL = the first */
    struct err *(*list)(void *site, void *session, const char *model, const char *page,
                        struct call_request *r);

    /* Reads a page: objects by their name below the repository.
     * ret_next  the caller's; NULL = this was the last
     * errors    INVALID_ARG: not a listing */
    struct err *(*read)(void *site, const char *body, size_t len, struct listing *l,
                        char **ret_next);

    /* The request for the bytes [from, to) of an object, as long as its tag is this. */
    struct err *(*get)(void *site, void *session, const struct listing_object *o, uint64_t from,
                       uint64_t to, struct call_request *r);

    /* The request whose answer's content-length is that of the first part of an object that was
     * uploaded in several; NULL = stores of this kind say digests of the whole. */
    struct err *(*first_part)(void *site, void *session, const struct listing_object *o,
                              struct call_request *r);

    /* Whether the request may succeed when it is made again: new credentials, another region. */
    bool (*renew)(void *site, const struct call_answer *a);

    /* Whether the digest of the listing is that of the bytes that this answer sends. */
    bool (*digest_holds)(const struct call_answer *a);

    /* Text that names an object for ever: the same for every path that leads to it. */
    void (*identify)(void *site, const struct listing_object *o, struct strbuf *sb);
};

extern const struct kind s3_kind;
extern const struct kind gcs_kind;
extern const struct kind azure_kind;
