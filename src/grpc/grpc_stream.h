#pragma once
/* One call: its metadata, its incoming messages, and its state. grpc_answer.h handles its
 * output, its method (grpc_method.h) handles its messages. Everything here runs on the thread of
 * the connection's worker. */
#include "base/err.h"
#include "base/list.h"
#include "base/strbuf.h"
#include "codec/expand.h"
#include "grpc/grpc_inbox.h"
#include "net/guard.h"
#include "net/h2/h2_out.h"
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
struct tracing_record;

/* The most requests of a ModelStreamInfer call in flight; then its client must wait
 * (backpressure). */
#define GRPC_STREAM_MAX_CALLS 256u

/* The most bytes of answers that wait for a client. Above it, no further requests of the client
 * are taken; above four times as many, its call is ended. */
#define GRPC_STREAM_REPLY_BYTES ((uint64_t)64 << 20)

/* A request of a stream in flight; it owns its responses. */
struct grpc_call {
    struct list node; /* linked into stream->calls, in order of arrival */
    struct grpc_stream *stream;
    /* valid until its final response is freed; NULL = none was submitted */
    struct request *request;
    struct tracing_record *trace;             /* NULL = it is not traced */
    const struct grpc_infer_classes *classes; /* outputs to classify; in the request's arena */
    struct response *held;  /* a unary call's response that came before its final flag */
    struct h2_reply *reply; /* of a streaming call: a reply that waits for those before it */
    /* of a streaming call: the version that the request named, NULL = none; owned */
    char *version_text;
    uint32_t responses;
    bool decoupled;
    bool empty_final; /* triton_enable_empty_final_response */
    bool done;        /* the final response came */
};

/* The memory of a stream, with its part of the session, is about this much. */
#define GRPC_STREAM_BYTES ((size_t)1024)

enum grpc_stream_unary {
    GRPC_STREAM_WAITING,   /* waits for its only message */
    GRPC_STREAM_KEPT,      /* the message is in `in`; the end of the client's side has not come */
    GRPC_STREAM_DELIVERED, /* the method has the message */
};

struct grpc_stream {
    uint32_t magic;
    int32_t id;
    struct grpc_conn *conn; /* NULL once the stream is closed: nobody waits for answers */
    struct list node;       /* linked into conn->streams */
    struct list waiting;    /* linked into conn->put_off */
    const struct grpc_method *method;

    /* From the metadata. */
    bool post;
    bool grpc;        /* the content-type is right */
    bool grpc_errors; /* triton_grpc_error: true */
    bool bad_timeout;
    bool late;              /* the timeout is 0: it is over before the call began */
    struct guard_seen seen; /* what its metadata show of who may use the interface */
    struct strbuf headers;  /* headers that may become parameters: name, NUL, value, NUL, ... */
    struct strbuf context;  /* traceparent and tracestate in the same form, if traces need them */
    time_ns begun;          /* when the call began; 0 = its first request was traced */
    enum coding encoding;
    enum coding packing; /* compression of outgoing messages */
    size_t header_bytes;
    time_ns timeout; /* 0 = none */

    /* Incoming. */
    struct grpc_inbox in;
    enum grpc_stream_unary unary;
    bool counted;     /* counted in conn->receiving */
    time_ns arrived;  /* then: when bytes of it last came, or the server began to wait for them */
    bool half_closed; /* the client sends no more */
    bool of_use;      /* it brought a message */
    bool cut;         /* some of the client's data was dropped because the server stops */
    /* a message that is being decompressed: it comes before all others */
    struct grpc_unpack *unpacking;
    /* bytes of a streaming call that wait until it continues: [held_at, held_end) */
    struct buf *held;
    size_t held_at;
    size_t held_end;

    /* Outgoing: grpc_answer.c. */
    bool responding; /* headers were submitted */
    bool deferred;   /* nghttp2 waits for the next reply */
    bool stopping;   /* the client will be told to stop when the answer is out */
    bool ended;      /* no message will follow; incoming data is ignored */
    bool ending;     /* a delay holds its end back; incoming data is ignored already */
    int status;      /* for the trailers */
    char *message;   /* NULL = none; owned */
    struct h2_reply *replies;
    struct h2_reply **last_reply;
    uint64_t reply_bytes; /* bytes held by replies that wait to be sent */
    time_ns moved;        /* when a part of a reply was last sent, or the first began to wait */

    uint32_t model;        /* of a unary call: see front_metrics_model_id */
    struct access *access; /* data for the access log; NULL = the log is off */

    struct grpc_delay *delay; /* owned; NULL = no delay: grpc_delay.h */
    struct loop_timer timer;  /* set while the call has a deadline */
    struct list calls;        /* requests in flight: they keep the stream alive */
    uint32_t call_count;
    struct grpc_call call; /* the request of a unary call */
};

/* grpc_stream_over - how the call ends is settled: nothing of its client reaches the method. */
static inline bool grpc_stream_over(const struct grpc_stream *s)
{
    return s->ended || s->ending;
}

/* grpc_stream_callbacks - set the callbacks for headers, data and closing. */
void grpc_stream_callbacks(nghttp2_session_callbacks *c);

/* grpc_stream_frame - a DATA or HEADERS frame was received whole. */
void grpc_stream_frame(struct grpc_conn *c, const nghttp2_frame *frame);

/* grpc_stream_resume - after the answers of a turn were written: paused calls of the connection
 * may continue. */
void grpc_stream_resume(struct grpc_conn *c);

/* grpc_stream_unpacked - the decompressed message went to the method. */
void grpc_stream_unpacked(struct grpc_stream *s);

/* grpc_stream_room - check that the server may hold more for the call's client.
 * errors  UNAVAILABLE if the client is above its allowance and the budget is spent */
struct err *grpc_stream_room(const struct grpc_stream *s);

/* grpc_stream_hold - a request of the stream is in flight.
 * grpc_stream_release - it has ended; the stream is freed if it is closed and this was its last
 * request. */
void grpc_stream_hold(struct grpc_stream *s, struct grpc_call *call);
void grpc_stream_release(struct grpc_stream *s, struct grpc_call *call);

/* grpc_stream_end_if_over - end a streaming call with its status if every request was answered,
 * and its client has sent everything or the server stops. The status is OK only if everything
 * that the client sent was handled. */
void grpc_stream_end_if_over(struct grpc_stream *s);

/* grpc_stream_leave - the server stops: a streaming call takes no more messages. */
void grpc_stream_leave(struct grpc_stream *s);

/* grpc_stream_works - true if the call waits for its model, or for the repository. */
bool grpc_stream_works(const struct grpc_stream *s);

/* grpc_stream_cut - the server stops, and does not wait for the call: end it with a status. */
void grpc_stream_cut(struct grpc_stream *s);

/* grpc_stream_cancel - cancel every request in flight. */
void grpc_stream_cancel(struct grpc_stream *s);

/* grpc_stream_find - the stream of this connection with this id; NULL = none has it. */
struct grpc_stream *grpc_stream_find(const struct grpc_conn *c, int32_t id);

/* grpc_stream_closed - the stream or its connection is gone: cancel its requests, and free it if
 * none is left. */
void grpc_stream_closed(struct grpc_stream *s);
