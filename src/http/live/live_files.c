#include "http/live/live_files.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "http/http_exchange.h"
#include "http/http_shard.h"
#include "net/helpers.h"
#include "net/turns.h"
#include "os/files/beside.h"
#include "os/files/file.h"
#include "server/worker.h"

#include <string.h>

#define FILE_BYTES ((size_t)1 << 20)

/* What a file counts until it is read: as much as lets nothing else of the connection begin. */
#define UNKNOWN_BYTES (TURNS_UNREAD + 1)

/* What the browser may do for the page: scripts, styles and requests of this port, and nothing
 * of anybody else's. Text never becomes markup (trusted-types), no page frames this one. */
#define POLICY                                                                              \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "    \
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; " \
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"  \
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"                   \
    "Cross-Origin-Opener-Policy: same-origin\r\nCache-Control: no-cache\r\n"

struct live_file {
    const char *path; /* of the request */
    const char *name; /* below share/nereid/ */
    const char *type;
};

static const struct live_file files[] = {
    {"/", "live/live.html", "text/html; charset=utf-8"},
    {"/nereid/live.css", "live/live.css", "text/css; charset=utf-8"},
    {"/nereid/live.js", "live/live.js", "text/javascript; charset=utf-8"},
    {"/nereid/try.js", "live/try.js", "text/javascript; charset=utf-8"},
    {"/nereid/body.js", "live/body.js", "text/javascript; charset=utf-8"},
    {"/nereid/tensor.js", "live/tensor.js", "text/javascript; charset=utf-8"},
    {"/nereid/charts.js", "live/charts.js", "text/javascript; charset=utf-8"},
    {"/nereid/uPlot.js", "report/uPlot.iife.min.js", "text/javascript; charset=utf-8"},
    {"/nereid/uPlot.css", "report/uPlot.min.css", "text/css; charset=utf-8"},
};

/* A file that is being read for an exchange. */
struct live_read {
    struct helpers_job job; /* first */
    struct http_exchange *x;
    const struct live_file *file;
    char *text; /* owned */
    size_t len;
    struct err *error;
};

const struct live_file *live_files_find(const char *path, size_t len)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        if (strlen(files[i].path) == len && memcmp(files[i].path, path, len) == 0)
            return &files[i];
    return NULL;
}

static bool live_read_step(struct helpers_job *j)
{
    struct live_read *r = (struct live_read *)j;
    char *prefix = beside_prefix();
    struct strbuf path = STRBUF_INIT;
    strbuf_printf(&path, "%s/share/nereid/%s", prefix ? prefix : "", r->file->name);
    r->error = file_read(strbuf_str(&path), FILE_BYTES, &r->text, &r->len);
    strbuf_fini(&path);
    mem_free(prefix);
    return true;
}

/* The place of the installation is for the log, not for who asks. */
static void live_read_settle(struct http_exchange *x, struct live_read *r)
{
    if (r->error && err_code(r->error) == STATUS_NOT_FOUND) {
        http_exchange_fault(x, 404, "this installation has no live page: a file of it is missing");
    } else if (r->error) {
        http_exchange_fault(x, 500, "a file of the live page cannot be read");
    } else if (!r->text) { /* the front end stops */
        http_exchange_fault(x, 503, "Server exiting");
    } else {
        x->extra = POLICY;
        http_exchange_text(x, 200, r->file->type, r->text, r->len);
        r->text = NULL;
    }
}

static void live_read_finish(struct helpers_job *j)
{
    struct live_read *r = (struct live_read *)j;
    struct http_exchange *x = r->x;
    x->job = NULL;
    x->pending = false;
    http_exchange_let_go(x);
    if (x->conn)
        live_read_settle(x, r);
    else
        http_exchange_free(x);
    err_free(r->error);
    mem_free(r->text);
    mem_free(r);
}

void live_files_answer(struct http_exchange *x, const struct live_file *f)
{
    struct live_read *r = MEM_NEW(struct live_read);
    r->x = x;
    r->file = f;
    r->job.loop = x->shard->worker->loop;
    r->job.step = live_read_step;
    r->job.finish = live_read_finish;
    x->job = &r->job;
    x->pending = true;
    worker_told(x->shard->worker, 0);
    http_exchange_hold(x, UNKNOWN_BYTES);
    helpers_submit(x->shard->front->helpers, &r->job);
}
