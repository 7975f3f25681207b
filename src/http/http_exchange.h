#pragma once
/* One request of a connection and its answer. It lives until the answer is written; if the
 * connection ended before, until the model's last response came. Worker's thread only. */
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "codec/http1.h"
#include "http/http_service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget_account;
struct helpers_job;
struct http_flat;
struct http_conn;
struct http_line;
struct http_shard;
struct request;
struct response;
struct tracing_record;

/* A whole message, as the service gets it. */
struct http_message {
    const struct http1_head *head;
    const struct http_route *route; /* http_message_part reads its parts */
    /* may be changed, and so may HTTP_BODY_PADDING bytes after it if they are restored; NULL if
     * body_len is 0 */
    char *body;
    size_t body_len;
    struct buf *buf; /* the memory of the body; NULL: in memory that is reused after the call */
    /* what is wrong with a compressed body, of which `body` is only the beginning; NULL = no
     * damage */
    const char *damage;
};

#define HTTP_BODY_PADDING 8u

/* http_message_part - where a part of the path begins. */
static inline const char *http_message_part(const struct http_message *m,
                                            struct http_route_part part)
{
    return (m->route->target ? m->route->target : m->head->url) + part.at;
}

/* How a requested output shall be returned. */
struct http_output_spec {
    const char *name;
    uint64_t classes; /* 0 = the tensor itself */
    bool binary;
    bool base64; /* strings that are not UTF-8 as {"b64":"..."} */
};

/* How much of an answer an exchange is. */
enum http_part {
    HTTP_PART_WHOLE,
    HTTP_PART_EVENT, /* of a stream: http_event.h */
    HTTP_PART_END,   /* of it; the exchange of the request */
};

struct http_exchange {
    uint32_t magic;
    uint16_t status;
    bool done;                /* the answer is complete */
    bool keep_alive;          /* the connection continues after it */
    bool head_only;           /* the answer to HEAD */
    bool explicit_keep_alive; /* HTTP/1.0 must be told that the connection continues */
    bool framed;              /* HTTP/2: the connection knows where an answer ends */
    bool counted;             /* counted as a request in flight */
    bool begun;               /* of a stream: the event with the head was made */
    bool cut;                 /* the server stops before it is answered */
    bool given_up;            /* of a stream: its client is too slow, no event follows */
    uint8_t part;             /* enum http_part */
    uint8_t route;            /* a route of the service; 0 = unknown */
    uint32_t model;           /* see front_metrics_model_id */
    bool pending; /* other work will answer it, so it is kept when the connection ends */
    /* decompresses its body or compresses its answer; NULL = none */
    struct helpers_job *job;
    struct list node;
    struct http_conn *conn; /* NULL: nobody waits for the answer any more */
    /* whose answer it is; valid as long as conn. NULL: the stream of HTTP/2 has handed it on */
    struct http_line *line;
    struct http_shard *shard;
    struct access *access;        /* data for the access log; NULL = the log is off */
    struct tracing_record *trace; /* NULL = it is not traced */
    const char *param;            /* what of the request its error is about, for service->fault */

    /* Of an event. */
    struct http_exchange *stream; /* stands behind its events until the last of them is gathered */
    bool begins;                  /* the first */
    size_t event_bytes;           /* what it and its response take */
    uint64_t streamed; /* of a stream: bytes of its events, where they are counted for access */

    /* An answer that is text. */
    const char *content_type; /* static; NULL for no body */
    const char *extra;        /* static additional header lines, each with CR LF; or NULL */
    const char *cors;         /* header lines of http_cors.h, of the front end; or NULL */
    const char *body;
    size_t body_len;
    char *owned;                    /* memory of `body` that must be freed */
    struct budget_account *account; /* charged for that memory */
    size_t held;                    /* bytes charged */
    bool spared;                    /* it was allowed although there was no room: budget_spare */
    const char *coding;             /* static: the compression; NULL = not compressed */
    /* of a compressed answer: the value of Inference-Header-Content-Length; 0 = none */
    uint64_t json_len;
    uint16_t retry_secs; /* when the client may try again: Retry-After; 0 = it is not said */

    /* An answer of a model. */
    struct request *request;   /* NULL after its final response came */
    struct response *response; /* the response to write; its memory holds the specs too */
    /* the most bytes of its JSON; SIZE_MAX = overflow. http_answer_prepare or http_flat_prepare */
    size_t json_room;
    const struct http_flat *flat; /* it is written as http_flat.h says; in its memory */
    uint32_t responses;           /* that came */
    const struct http_output_spec *specs;
    uint32_t spec_count;
    bool binary_default;  /* binary or not, if specs are empty */
    uint8_t accept;       /* enum coding: how to compress it */
    struct buf *rendered; /* text that was too large for the worker's buffer, or that is shared */
};

#define HTTP_EXCHANGE_MAGIC 0x48545850u

#define HTTP_JSON "application/json"
#define HTTP_TEXT "text/plain"

/* http_exchange_new - make an exchange and append it to those of the line. */
struct http_exchange *http_exchange_new(struct http_line *l);

/* http_exchange_before - one that is answered right before x, which waits for its turn. */
struct http_exchange *http_exchange_before(struct http_exchange *x);

/* http_exchange_count - a request has begun; its head is known. */
void http_exchange_count(struct http_exchange *x, const struct http1_head *head);

/* http_exchange_counted - the request was answered with its status and this many bytes. */
void http_exchange_counted(struct http_exchange *x, uint64_t bytes);

/* http_exchange_free - free it; it is in no list any more. */
void http_exchange_free(struct http_exchange *x);

/* http_exchange_hold - memory of x, without any text: it counts like that. */
void http_exchange_hold(struct http_exchange *x, size_t bytes);

/* http_exchange_let_go - give back all that was held for x so far, before its text takes the
 * place. */
void http_exchange_let_go(struct http_exchange *x);

/* http_exchange_own - make it the owner of text on the heap, which is charged. */
void http_exchange_own(struct http_exchange *x, char *text, size_t bytes);

/* http_exchange_static - answer with static text. */
void http_exchange_static(struct http_exchange *x, uint16_t status, const char *content_type,
                          const char *body, size_t len);

/* http_exchange_text - answer with text on the heap, which the exchange then owns. The text may
 * be long. If there is no room to let it wait for its client, it is allowed by budget_spare as
 * long as the connection reads its answers; else that error is the answer. */
void http_exchange_text(struct http_exchange *x, uint16_t status, const char *content_type,
                        char *body, size_t len);

/* http_exchange_shared - the same with text that has other readers; takes a reference over. It
 * is counted as if the exchange owned it. */
void http_exchange_shared(struct http_exchange *x, uint16_t status, const char *content_type,
                          struct buf *text);

/* http_exchange_error - answer {"error":message}; e is freed. */
void http_exchange_error(struct http_exchange *x, struct err *e);

/* http_exchange_fault - answer {"error":message} with an HTTP status. */
void http_exchange_fault(struct http_exchange *x, uint16_t status, const char *message);

/* http_exchange_done - the answer is complete and is written when its turn comes. */
void http_exchange_done(struct http_exchange *x);
