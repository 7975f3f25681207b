#include "http/http_encode.h"

#include "base/log.h"
#include "base/mem.h"
#include "codec/shrink.h"
#include "http/http_answer.h"
#include "http/http_exchange.h"
#include "http/http_out.h"
#include "http/http_shard.h"
#include "infer/response.h"
#include "net/helpers.h"
#include "os/pool.h"
#include "server/worker.h"

/* An answer that is being compressed; its parts lie in the exchange's response and in `text`. */
struct encode {
    struct helpers_job job; /* first */
    struct http_exchange *x;
    struct shrink *shrink;
    struct buf *text;
    struct err *error;
    bool done; /* completely compressed */
};

static void encode_free(struct encode *n)
{
    shrink_free(n->shrink);
    buf_unref(n->text);
    err_free(n->error);
    mem_free(n);
}

static void http_encode_settle(struct encode *n)
{
    struct http_exchange *x = n->x;
    if (n->error || !n->done) {
        LOG_VERBOSE(1, "a response goes out as it is: %s",
                    n->error ? err_message(n->error) : "the server is stopping");
        http_exchange_done(x);
        return;
    }
    size_t len;
    shrink_take(n->shrink, &x->rendered, &len);
    response_free(x->response);
    x->response = NULL;
    x->specs = NULL;
    x->coding = coding_name((enum coding)x->accept);
    x->body = (const char *)x->rendered->data;
    x->body_len = len;
    http_exchange_done(x);
}

static bool http_encode_on_step(struct helpers_job *j)
{
    struct encode *n = (struct encode *)j;
    n->error = shrink_step(n->shrink, HELPERS_SLICE_BYTES, &n->done);
    return n->done || n->error;
}

static void http_encode_on_finish(struct helpers_job *j)
{
    struct encode *n = (struct encode *)j;
    struct http_exchange *x = n->x;
    x->job = NULL;
    x->pending = false;
    if (x->conn)
        http_encode_settle(n);
    else
        http_exchange_free(x);
    encode_free(n);
}

/* Finds the parts of the answer, and makes the compressor. */
static struct err *http_encode_begin(struct encode *n)
{
    struct http_exchange *x = n->x;
    size_t room = http_answer_room(x);
    if (room == SIZE_MAX)
        return err_new(STATUS_UNAVAILABLE, "no room for the text of the response");
    struct err *e = pool_buf(room, &n->text);
    if (e)
        return e;
    struct http_out out = {0};
    http_answer_body(x, (char *)n->text->data, &out);
    e = shrink_new(out.iov, out.count, (enum coding)x->accept, 0, &n->shrink);
    http_out_fini(&out);
    return e;
}

void http_encode(struct http_exchange *x)
{
    struct encode *n = MEM_NEW(struct encode);
    n->x = x;
    n->error = http_encode_begin(n);
    if (!n->error)
        n->error = shrink_step(n->shrink, HELPERS_INLINE_BYTES, &n->done);
    if (n->done || n->error) {
        http_encode_settle(n);
        encode_free(n);
        return;
    }
    n->job.loop = x->shard->worker->loop;
    n->job.step = http_encode_on_step;
    n->job.finish = http_encode_on_finish;
    x->job = &n->job;
    x->pending = true;
    helpers_submit(x->shard->front->helpers, &n->job);
}
