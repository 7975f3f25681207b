#pragma once
/* One call: its metadata, the messages that come in, and what holds it. What goes out is
 * grpc_answer.h; which call it is decides its method (grpc_method.h). Everything here runs on
 * the thread of the connection's worker. */
#include "base/err.h"
#include "base/list.h"
#include "base/strbuf.h"
#include "codec/expand.h"
#include "grpc/grpc_inbox.h"
#include "grpc/grpc_out.h"
#include "os/loop.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

struct access;
struct grpc_conn;
struct grpc_delay;
struct grpc_infer_classes;
struct grpc_method;
struct grpc_stream;
struct grpc_unpack;
struct request;
struct response;

/* Requests that one ModelStreamInfer call may have under way; then its client is made to wait. */
#define GRPC_STREAM_MAX_CALLS 256u

/* Bytes of answers that may wait for a client; then no more of its requests are taken, and past
 * four times as many its call is ended. */
#define GRPC_STREAM_REPLY_BYTES ((uint64_t)64 << 20)

/* One request of a stream under way: the owner of its responses. */
struct grpc_call {
    struct list node; /* in stream->calls, by arrival */
    struct grpc_stream *stream;
    /* valid until its final response is freed; NULL = none was submitted */
    struct request *request;
    const struct grpc_infer_classes *classes; /* outputs to classify; in the request's arena */
    struct response *held;    /* a unary call's response that came before the final flag */
    struct grpc_reply *reply; /* a streamed one that waits for those before it */
    /* of a streamed one: the version as the request named it, NULL = none; owned */
    char *version_text;
    uint32_t responses;
    bool decoupled;
    bool empty_final; /* triton_enable_empty_final_response */
    bool done;        /* the final response came */
};

/* A stream, with what the session keeps of it, takes about so much. */
#define GRPC_STREAM_BYTES ((size_t)1024)

enum grpc_stream_unary {
    GRPC_STREAM_WAITING,   /* for the one message */
    GRPC_STREAM_KEPT,      /* it lies in `in`, the end of the client's side is missing */
    GRPC_STREAM_DELIVERED, /* the method has it */
};

struct grpc_stream {
    uint32_t magic;
    int32_t id;
    struct grpc_conn *conn; /* NULL once the stream is closed: nobody waits for answers any more */
    struct list node;       /* in conn->streams */
    struct list waiting;    /* in conn->put_off */
    const struct grpc_method *method;

    /* What the metadata said. */
    bool post;
    bool grpc;        /* content-type */
    bool grpc_errors; /* triton_grpc_error: true */
    bool bad_timeout;
    bool late;             /* the time-out is 0: over before it began */
    bool allowed;          /* has the header that its interface wants, */
    bool denied;           /* and one of that name that is wrong */
    struct strbuf headers; /* that may become parameters: name, NUL, value, NUL, ... */
    enum expand_coding encoding;
    enum expand_coding packing; /* of messages that go out */
    size_t header_bytes;
    time_ns timeout; /* 0 = none */

    /* Coming in. */
    struct grpc_inbox in;
    enum grpc_stream_unary unary;
    bool counted;     /* among conn->receiving */
    bool half_closed; /* the client sends no more */
    bool of_use;      /* it brought a message */
    bool cut;         /* some of what the client sent was thrown away, since the server stops */
    /* a message that is being decompressed: it comes before all others */
    struct grpc_unpack *unpacking;
    /* bytes of a streaming call that wait until it goes on: [held_at, held_end) */
    struct buf *held;
    size_t held_at;
    size_t held_end;

    /* Going out: grpc_answer.c. */
    bool responding; /* headers were submitted */
    bool deferred;   /* nghttp2 waits for the next reply */
    bool stopping;   /* the client is to be stopped when the answer is out */
    bool ended;      /* no message will follow; nothing that comes in matters */
    int status;      /* for the trailers */
    char *message;   /* NULL = none; owned */
    struct grpc_reply *replies;
    struct grpc_reply **last_reply;
    uint64_t reply_bytes; /* that those which wait to be gathered hold */
    time_ns moved;        /* when some were last gathered, or the first began to wait */

    uint32_t model;        /* of a unary call: see front_metrics_model_id */
    struct access *access; /* NULL = nobody wants to know */

    struct grpc_delay *delay; /* owned; NULL = it is not delayed: grpc_delay.h */
    struct loop_timer timer;  /* set while the call has a deadline */
    struct list calls;        /* requests under way: they hold the stream */
    uint32_t call_count;
    struct grpc_call call; /* the one of a unary call */
};

/* grpc_stream_callbacks - set the callbacks for headers, data and closing. */
void grpc_stream_callbacks(nghttp2_session_callbacks *c);

/* grpc_stream_frame - a DATA or HEADERS frame was received whole. */
void grpc_stream_frame(struct grpc_conn *c, const nghttp2_frame *frame);

/* grpc_stream_resume - after a turn's answers were written: paused calls of the connection may
 * go on. */
void grpc_stream_resume(struct grpc_conn *c);

/* grpc_stream_unpacked - the message that was being decompressed went to the method. */
void grpc_stream_unpacked(struct grpc_stream *s);

/* grpc_stream_room - whether the call's client may have something more of us.
 * errors  UNAVAILABLE when it has more than its allowance, and the budget is spent */
struct err *grpc_stream_room(const struct grpc_stream *s);

/* grpc_stream_hold - a request of the stream goes under way. grpc_stream_release - it has ended;
 * the stream is freed when it is closed and this was the last. */
void grpc_stream_hold(struct grpc_stream *s, struct grpc_call *call);
void grpc_stream_release(struct grpc_stream *s, struct grpc_call *call);

/* grpc_stream_end_if_over - a streaming call is over once every request was answered, and its
 * client has said all, or the server stops: then it gets its status. That is OK only when all
 * that the client sent was taken. */
void grpc_stream_end_if_over(struct grpc_stream *s);

/* grpc_stream_leave - the server stops: a streaming call takes no more messages. */
void grpc_stream_leave(struct grpc_stream *s);

/* grpc_stream_cancel - tell every request under way that nobody waits for it. */
void grpc_stream_cancel(struct grpc_stream *s);

/* grpc_stream_closed - the stream or its connection is gone: cancel its calls, free it when none
 * is left. */
void grpc_stream_closed(struct grpc_stream *s);
