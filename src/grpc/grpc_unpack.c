#include "grpc/grpc_unpack.h"

#include "base/mem.h"
#include "codec/expand.h"
#include "grpc/grpc_answer.h"
#include "grpc/grpc_conn.h"
#include "grpc/grpc_method.h"
#include "grpc/grpc_turn.h"
#include "net/helpers.h"
#include "os/pool.h"
#include "server/worker.h"

#include <string.h>

struct grpc_unpack {
    struct helpers_job job;     /* first */
    struct grpc_stream *stream; /* NULL = the stream is gone */
    struct expand *expand;
    enum expand_state state;
    struct buf *packed;
};

static void unpack_free(struct grpc_unpack *u)
{
    expand_free(u->expand);
    buf_unref(u->packed);
    mem_free(u);
}

static void grpc_unpack_settle(struct grpc_unpack *u)
{
    struct grpc_stream *s = u->stream;
    struct buf *buf = NULL;
    size_t len;
    switch (u->state) {
    case EXPAND_DONE:
        expand_take(u->expand, &buf, &len);
        grpc_turn_message(s, buf->data, len, &buf);
        break;
    case EXPAND_DAMAGED:
        grpc_answer_fail(s, err_new(STATUS_INVALID_ARG, "a compressed message cannot be read: %s",
                                    expand_why(u->expand)));
        break;
    case EXPAND_TOO_LARGE:
        grpc_answer_fail(s, err_new(STATUS_INVALID_ARG, "the decompressed message is over %u bytes",
                                    grpc_method_max_bytes(s->method)));
        break;
    case EXPAND_NO_ROOM:
        grpc_answer_fail(s, expand_error(u->expand));
        break;
    case EXPAND_MORE:
        grpc_answer_end(s, GRPC_ANSWER_UNAVAILABLE, "the server is stopping");
        break;
    }
    buf_unref(buf);
}

static bool grpc_unpack_on_step(struct helpers_job *j)
{
    struct grpc_unpack *u = (struct grpc_unpack *)j;
    u->state = expand_step(u->expand, HELPERS_SLICE_BYTES);
    return u->state != EXPAND_MORE;
}

static void grpc_unpack_on_finish(struct helpers_job *j)
{
    struct grpc_unpack *u = (struct grpc_unpack *)j;
    struct grpc_stream *s = u->stream;
    if (s) {
        s->unpacking = NULL;
        if (!grpc_stream_over(s))
            grpc_unpack_settle(u);
        grpc_stream_unpacked(s);
    }
    unpack_free(u);
}

void grpc_unpack(struct grpc_stream *s, const uint8_t *data, size_t len, struct buf *buf)
{
    struct grpc_unpack *u = MEM_NEW(struct grpc_unpack);
    u->stream = s;
    u->packed = buf;
    struct err *e = NULL;
    if (!buf && len) {
        e = pool_buf(len, &u->packed);
        if (!e)
            data = memcpy(u->packed->data, data, len);
    }
    if (!e)
        e = expand_new(&(struct expand_spec){.data = data,
                                             .len = len,
                                             .coding = s->encoding,
                                             .limit = grpc_method_max_bytes(s->method)},
                       &u->expand);
    if (e) {
        grpc_answer_fail(s, e);
        unpack_free(u);
        return;
    }
    u->state = expand_step(u->expand, HELPERS_INLINE_BYTES);
    if (u->state != EXPAND_MORE) {
        grpc_unpack_settle(u);
        unpack_free(u);
        return;
    }
    struct grpc_home *home = s->conn->home;
    u->job.loop = home->worker->loop;
    u->job.step = grpc_unpack_on_step;
    u->job.finish = grpc_unpack_on_finish;
    s->unpacking = u;
    helpers_submit(home->helpers, &u->job);
}

void grpc_unpack_forget(struct grpc_unpack *u)
{
    u->stream = NULL;
    helpers_cancel(&u->job);
}
