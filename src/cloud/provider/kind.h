#pragma once
/* The interface of a kind of store: s3, gcs, azure. cloud/ uses nothing else of them. */
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
    const char *mount_env; /* the environment variable that names the place of the cache */

    /* open - read the path and the settings; sends no request.
     * path  of the repository; net outlives the result */
    struct err *(*open)(const char *path, struct call_net *net, void **ret);
    void (*close)(void *site);

    /* list - make the request for a page of the objects of a model, or of the whole repository
     * (model NULL).
     * page  from the page before; NULL = the first */
    struct err *(*list)(void *site, void *session, const char *model, const char *page,
                        struct call_request *r);

    /* read - parse a page: objects with their names below the repository.
     * ret_next  owned by the caller; NULL = this was the last page
     * errors    INVALID_ARG: not a listing */
    struct err *(*read)(void *site, const char *body, size_t len, struct listing *l,
                        char **ret_next);

    /* get - make the request for the bytes [from, to) of an object, if its tag has not changed. */
    struct err *(*get)(void *site, void *session, const struct listing_object *o, uint64_t from,
                       uint64_t to, struct call_request *r);

    /* first_part - make a request whose answer has as content-length the size of the first part
     * of an upload in parts; NULL = stores of this kind have digests of whole objects. */
    struct err *(*first_part)(void *site, void *session, const struct listing_object *o,
                              struct call_request *r);

    /* renew - true if the request may succeed when it is repeated: with new credentials, or in
     * another region. */
    bool (*renew)(void *site, const struct call_answer *a);

    /* digest_holds - true if the digest of the listing is that of the bytes in this answer. */
    bool (*digest_holds)(const struct call_answer *a);

    /* identify - write a text that names an object permanently: the same for every path to it. */
    void (*identify)(void *site, const struct listing_object *o, struct strbuf *sb);
};

extern const struct kind s3_kind;
extern const struct kind gcs_kind;
extern const struct kind azure_kind;
