#pragma once
/* One request of a connection and its answer. It lives until the answer is written, or, when the
 * connection ended before, until the last response of the model came. Worker's thread only. */
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "codec/http1.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget_account;
struct helpers_job;
struct http_conn;
struct http_route;
struct http_shard;
struct request;
struct response;

/* A whole message, as a handler sees it. */
struct http_message {
    const struct http1_head *head;
    const struct http_route *route; /* parts of head->url */
    /* may be written to, and HTTP_BODY_PADDING bytes behind it too when they are restored; NULL
     * when body_len is 0 */
    char *body;
    size_t body_len;
    struct buf *buf; /* what the body lies in; NULL: in memory that is reused after the call */
    /* the body is what could be decompressed of one that was damaged so; NULL = none was */
    const char *damage;
};

#define HTTP_BODY_PADDING 8u

/* How an output that the request named shall be returned. */
struct http_output_spec {
    const char *name;
    uint64_t classes; /* 0 = the tensor itself */
    bool binary;
};

struct http_exchange {
    uint32_t magic;
    uint16_t status;
    bool done;                /* the answer is complete */
    bool keep_alive;          /* the connection goes on after it */
    bool head_only;           /* the answer to HEAD */
    bool explicit_keep_alive; /* HTTP/1.0 wants to be told */
    bool counted;             /* as a request that is under way */
    uint8_t route;            /* of the service's routes; 0 = none that it knows */
    uint32_t model;           /* see front_metrics_model_id */
    bool pending; /* something that is under way will answer it: kept when the connection ends */
    /* of it: what decompresses its body or compresses its answer; NULL = none */
    struct helpers_job *job;
    struct list node;
    struct http_conn *conn; /* NULL: nobody waits for the answer any more */
    struct http_shard *shard;
    struct access *access; /* NULL = nobody wants to know */

    /* An answer that is text. */
    const char *content_type; /* static; NULL for no body */
    const char *extra;        /* static further header lines, each with CR LF; or NULL */
    const char *body;
    size_t body_len;
    char *owned;                    /* what body lies in, if it must be freed, */
    struct budget_account *account; /* which this holds; */
    size_t held;                    /* so many bytes */
    bool spared;                    /* though there was no room: budget_spare */
    const char *coding;             /* static: what it was compressed with; NULL = it was not */
    /* of a compressed one: what Inference-Header-Content-Length says; 0 = nothing */
    uint64_t json_len;

    /* An answer of a model. */
    struct request *request;   /* until its final response came */
    struct response *response; /* the one to be written; its memory holds the specs too */
    /* the most bytes of its JSON, by http_answer_prepare; SIZE_MAX = past counting */
    size_t json_room;
    const struct http_output_spec *specs;
    uint32_t spec_count;
    bool binary_default;  /* for outputs when specs are empty */
    uint8_t accept;       /* enum expand_coding: what it is to be compressed with */
    struct buf *rendered; /* text that was too large for the worker's own buffer; or is shared */
};

#define HTTP_EXCHANGE_MAGIC 0x48545850u

#define HTTP_JSON "application/json"
#define HTTP_TEXT "text/plain"

/* http_exchange_new - appended to the connection's exchanges. */
struct http_exchange *http_exchange_new(struct http_conn *c);

/* http_exchange_count - a request comes from here on, by its head. */
void http_exchange_count(struct http_exchange *x, const struct http1_head *head);

/* http_exchange_counted - it was answered with its status and so many bytes. */
void http_exchange_counted(struct http_exchange *x, uint64_t bytes);

/* http_exchange_free - it is in no list any more. */
void http_exchange_free(struct http_exchange *x);

/* http_exchange_static - answer with text that lives forever. */
void http_exchange_static(struct http_exchange *x, uint16_t status, const char *content_type,
                          const char *body, size_t len);

/* http_exchange_text - answer with text of the heap, taken over. It may be long: where there is
 * no room to let it wait for its client it is spared (budget_spare) as long as the connection
 * reads what it is told; else that is the answer. */
void http_exchange_text(struct http_exchange *x, uint16_t status, const char *content_type,
                        char *body, size_t len);

/* http_exchange_shared - the same with text that others read too; takes over a reference. It
 * counts as if it were the exchange's own. */
void http_exchange_shared(struct http_exchange *x, uint16_t status, const char *content_type,
                          struct buf *text);

/* http_exchange_error - answer {"error":message}; e is taken over. */
void http_exchange_error(struct http_exchange *x, struct err *e);

/* http_exchange_fault - answer {"error":message} with a status of HTTP. */
void http_exchange_fault(struct http_exchange *x, uint16_t status, const char *message);

/* http_exchange_done - the answer is complete: it is written when its turn comes. */
void http_exchange_done(struct http_exchange *x);
