#include "isolate/isolate_answer.h"

#include "base/budget.h"
#include "base/buf.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/response_stats.h"
#include "infer/stats.h"
#include "infer/trace.h"
#include "model/config.h"
#include "os/loop.h"
#include "os/mutex.h"
#include "isolate/wire/isolate_param.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_session.h"

#include <string.h>

#define MOST_RANK  1024u
#define MOST_FLAGS UINT32_MAX /* a backend may set what it likes */
#define MOST_EARLY 2u
#define MOST_AHEAD 64u
#define FREE_COPY  8192u /* bytes of a record that are not charged */

/* Skips the number and the place of the record; the caller has read them. */
static void open_body(struct isolate_wire *w, const void *body, size_t len)
{
    isolate_wire_read(w, body, len);
    isolate_wire_get(w);
    isolate_wire_get(w);
}

static struct err *get_error(struct isolate_wire *w)
{
    uint64_t code = isolate_wire_get_most(w, STATUS_CANCELLED + 1);
    return code ? isolate_wire_get_error(w, (enum status)(code - 1)) : NULL;
}

/* Gets memory for an output and copies it there: an output in a message, or one that goes to an
 * allocator's memory. */
static struct err *isolate_answer_copy_in(struct response *r, struct tensor_output *o,
                                          const void *bytes, uint64_t len)
{
    struct err *e = response_output_memory(r, o, len);
    struct tensor_piece from = {.data = bytes, .size = len, .memory = BUF_MEMORY_CPU};
    return e ? e : response_output_write(o, 0, &from);
}

/* True if every byte of the output is read only once. The process can write to shared memory at
 * any time, so lengths of strings, and values that the step of an ensemble uses, could change
 * after they were checked. */
static bool is_read_once(const struct response *r, const struct tensor_output *o)
{
    return o->datatype != DATATYPE_BYTES && !r->request->parent;
}

/* Attaches an output that lies in shared memory. It stays there until the response is freed, or
 * is copied before anybody reads it. */
static struct err *isolate_answer_lend(struct isolate_session *s, struct isolate_wire *w,
                                       struct response *r, struct tensor_output *o)
{
    uint64_t slot = isolate_wire_get(w);
    uint64_t offset = isolate_wire_get(w);
    uint64_t bytes = isolate_wire_get(w);
    bool bad = w->bad;
    struct buf *buf = bad ? NULL : isolate_session_output(s, slot, offset, bytes, &bad);
    w->bad |= bad;
    if (bad)
        return NULL;
    if (!buf)
        return err_busy("%s: no room for the %llu bytes of output '%s': the bytes "
                        "that may be in flight "
                        "at once are in use",
                        s->model, (unsigned long long)bytes, o->name);
    if (response_output_is_given(r, o) || !is_read_once(r, o)) {
        struct err *e = isolate_answer_copy_in(r, o, buf->data, bytes);
        buf_unref(buf);
        return e;
    }
    o->buf = buf;
    o->data = buf->data;
    o->byte_size = bytes;
    return NULL;
}

static struct err *isolate_answer_get_output(struct isolate_session *s, struct isolate_wire *w,
                                             struct response *r)
{
    const char *name = isolate_wire_get_text(w);
    enum datatype datatype = (enum datatype)isolate_wire_get_most(w, DATATYPE_COUNT - 1);
    uint64_t rank = isolate_wire_get_most(w, MOST_RANK);
    int64_t dims[MOST_RANK];
    for (uint64_t i = 0; i < rank; i++)
        dims[i] = (int64_t)isolate_wire_get(w);
    uint64_t place = isolate_wire_get_most(w, PLACE_SHARED);
    if (w->bad)
        return NULL;
    struct tensor_output *o =
        response_add_shown_output(r, name, strlen(name), datatype, dims, (uint32_t)rank);
    if (place == PLACE_NONE)
        return NULL;
    if (place == PLACE_SHARED)
        return isolate_answer_lend(s, w, r, o);
    uint64_t len;
    const void *bytes = isolate_wire_get_bytes(w, &len);
    return w->bad ? NULL : isolate_answer_copy_in(r, o, bytes, len);
}

/* Reads all outputs of a record and attaches them. Returns the first error. */
static struct err *get_outputs(struct isolate_session *s, struct isolate_wire *w,
                               struct response *r)
{
    struct err *first = NULL;
    uint64_t count = isolate_wire_get_most(w, REQUEST_MAX_TENSORS);
    for (uint64_t i = 0; i < count && !w->bad; i++) {
        struct err *e = isolate_answer_get_output(s, w, r);
        if (first)
            err_free(e);
        else
            first = e;
    }
    return first;
}

static void release_copy(void *bytes)
{
    budget_release((size_t)(uintptr_t)bytes);
}

/* Charges what the response copies from the record (names, parameters and small outputs) until
 * the response is delivered. */
static struct err *charge_copy(struct isolate_session *s, struct response *r, size_t len)
{
    if (len <= FREE_COPY)
        return NULL;
    if (!budget_charge(len))
        return budget_busy(len, "%s: no room for the %zu bytes of a response", s->model, len);
    arena_on_end(&r->arena, release_copy, (void *)(uintptr_t)len);
    return NULL;
}

/* A message to a loop; it arrives after all messages that were posted before it. */
struct last_mail {
    struct mail mail;
    struct mutex lock; /* rank LEAF; guards there */
    struct mutex_cond changed;
    bool there;
};

static void last_mail_arrived(struct mail *m)
{
    struct last_mail *l = LIST_ITEM(m, struct last_mail, mail);
    mutex_lock(&l->lock);
    l->there = true;
    mutex_cond_signal(&l->changed);
    mutex_unlock(&l->lock);
}

/* Slows the process down to the speed of the loop. Responses of a decoupled model wait for the
 * loop (loop_post_many), and a process could send them faster than the loop handles them. So
 * after a number of responses, the thread that reads from the process waits for the loop. Such a
 * model never runs on a loop. */
static void keep_pace(struct isolate_answer *a, uint32_t flags)
{
    const struct request *r = a->request;
    while (r->parent)
        r = r->parent;
    struct loop *home = r->home;
    if (flags & RESPONSE_FINAL || !home || !a->request->config->decoupled ||
        ++a->early % MOST_AHEAD)
        return;
    struct last_mail l = {.mail.deliver = last_mail_arrived};
    mutex_init(&l.lock, MUTEX_RANK_LEAF);
    mutex_cond_init(&l.changed);
    loop_post_many(home, &l.mail, &l.mail);
    mutex_lock(&l.lock);
    while (!l.there)
        mutex_cond_wait(&l.changed, &l.lock);
    mutex_unlock(&l.lock);
    mutex_cond_fini(&l.changed);
    mutex_fini(&l.lock);
}

/* True if a response is passed on. A model that is not decoupled has its responses held until
 * its batch was executed. A second response that is not the final one already shows the
 * backend's error, so more of them are dropped. */
static bool is_heard(struct isolate_answer *a, uint32_t flags)
{
    if (a->answered)
        return false;
    return flags & RESPONSE_FINAL || a->request->config->decoupled || a->early++ < MOST_EARLY;
}

static bool isolate_answer_respond(struct isolate_answer *a, const void *body, size_t len)
{
    struct isolate_wire w;
    open_body(&w, body, len);
    uint32_t flags = (uint32_t)isolate_wire_get_most(&w, MOST_FLAGS);
    if (w.bad)
        return false;
    if (!is_heard(a, flags))
        return isolate_answer_drop(a->session, RECORD_RESPONSE, body, len);
    struct err *e = get_error(&w);
    struct response *r = response_new(a->request);
    struct err *mine = charge_copy(a->session, r, len);
    if (mine) {
        w.bad |= !isolate_answer_drop(a->session, RECORD_RESPONSE, body, len);
    } else {
        mine = isolate_param_get(&w, &r->params, &r->arena);
        mine = err_wrap(mine, "%s", a->session->model);
        struct err *more = get_outputs(a->session, &w, r);
        err_free(mine ? more : NULL);
        mine = mine ? mine : more;
    }
    if (w.bad) {
        err_free(e);
        err_free(mine);
        response_free(r);
        return false;
    }
    if (e)
        err_free(mine);
    else
        e = mine;
    a->answered = flags & RESPONSE_FINAL;
    response_send(r, flags, e);
    keep_pace(a, flags);
    return true;
}

static bool send_flags(struct isolate_answer *a, struct isolate_wire *w)
{
    uint32_t flags = (uint32_t)isolate_wire_get_most(w, MOST_FLAGS);
    if (w->bad)
        return false;
    if (!is_heard(a, flags))
        return true;
    a->answered = flags & RESPONSE_FINAL;
    response_send_flags(a->request, flags);
    keep_pace(a, flags);
    return true;
}

static bool reschedule(struct isolate_answer *a)
{
    struct err *e = a->released ? NULL : request_check_reschedule(a->request);
    if (a->released || e) {
        err_free(e);
        return false;
    }
    a->released = true;
    a->again = true;
    request_reschedule(a->request);
    return true;
}

static void isolate_answer_trace_compute(struct trace *t, const struct stats_compute *c)
{
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_START, c->start);
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_INPUT_END, c->input_end);
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_OUTPUT_START, c->output_start);
    trace_report(t, TRITONSERVER_TRACE_COMPUTE_END, c->end);
}

void isolate_answer_count_failure(struct isolate_session *s, const struct request *r,
                                  enum stats_reason reason)
{
    if (!r->gap)
        stats_failure(s->stats, reason, r->times.start, clock_now_ns());
}

static bool count(struct isolate_answer *a, struct isolate_wire *w)
{
    const struct request *r = a->request;
    bool success = isolate_wire_get(w) != 0;
    struct stats_compute c = {0};
    c.start = isolate_wire_get(w);
    c.input_end = isolate_wire_get(w);
    c.output_start = isolate_wire_get(w);
    c.end = isolate_wire_get(w);
    if (w->bad)
        return false;
    if (r->gap)
        return true;
    if (success)
        stats_success(a->session->stats, r->times.start, r->times.queue_start, &c, clock_now_ns(),
                      r->batch_size);
    else
        isolate_answer_count_failure(a->session, r, STATS_BACKEND);
    if (r->parent && success)
        request_spend(r, &c);
    if (r->trace && !a->released)
        isolate_answer_trace_compute(r->trace, &c);
    return true;
}

static bool count_response(struct isolate_answer *a, struct isolate_wire *w)
{
    uint32_t index = (uint32_t)isolate_wire_get_most(w, UINT32_MAX);
    uint64_t outcome = isolate_wire_get_most(w, RESPONSE_STATS_CANCEL);
    struct response_stats_times t = {0};
    t.start = isolate_wire_get(w);
    t.output_start = isolate_wire_get(w);
    t.end = isolate_wire_get(w);
    if (w->bad)
        return false;
    err_free(response_stats_add(stats_responses(a->session->stats, true), index,
                                (enum response_stats_outcome)outcome, &t));
    return true;
}

bool isolate_answer_record(struct isolate_answer *a, uint64_t kind, const void *body, size_t len)
{
    struct isolate_wire w;
    open_body(&w, body, len);
    switch (kind) {
    case RECORD_RESPONSE:
        return isolate_answer_respond(a, body, len);
    case RECORD_FLAGS:
        return send_flags(a, &w);
    case RECORD_RELEASE:
        if (a->released)
            return false;
        a->released = true;
        request_release(a->request);
        return true;
    case RECORD_AGAIN:
        return reschedule(a);
    case RECORD_GONE:
        a->gone = true;
        return true;
    case RECORD_STATISTICS:
        return count(a, &w);
    case RECORD_RESPONSE_STATISTICS:
        return count_response(a, &w);
    default:
        return false;
    }
}

static bool drop_output(struct isolate_session *s, struct isolate_wire *w)
{
    isolate_wire_get_text(w);
    isolate_wire_get(w);
    uint64_t rank = isolate_wire_get_most(w, MOST_RANK);
    for (uint64_t i = 0; i < rank; i++)
        isolate_wire_get(w);
    uint64_t place = isolate_wire_get_most(w, PLACE_SHARED);
    uint64_t len;
    if (place == PLACE_INLINE)
        isolate_wire_get_bytes(w, &len);
    if (place != PLACE_SHARED || w->bad)
        return !w->bad;
    uint64_t slot = isolate_wire_get(w);
    uint64_t offset = isolate_wire_get(w);
    uint64_t bytes = isolate_wire_get(w);
    return !w->bad && isolate_session_drop_output(s, slot, offset, bytes);
}

bool isolate_answer_drop(struct isolate_session *s, uint64_t kind, const void *body, size_t len)
{
    if (kind != RECORD_RESPONSE)
        return true;
    struct isolate_wire w;
    struct arena scratch;
    struct param_list params = {0};
    open_body(&w, body, len);
    isolate_wire_get(&w);
    err_free(get_error(&w));
    arena_init(&scratch, NULL, 0);
    err_free(isolate_param_get(&w, &params, &scratch));
    arena_fini(&scratch);
    uint64_t outputs = isolate_wire_get_most(&w, REQUEST_MAX_TENSORS);
    bool ok = !w.bad;
    for (uint64_t i = 0; ok && i < outputs; i++)
        ok = drop_output(s, &w);
    return ok;
}

void isolate_answer_now(struct isolate_answer *a, struct err *e)
{
    if (a->answered || a->again) {
        err_free(e);
        return;
    }
    a->answered = true;
    isolate_answer_count_failure(a->session, a->request, STATS_REJECTED);
    response_send(response_new(a->request), RESPONSE_FINAL, e);
}

bool isolate_answer_end(struct isolate_answer *a, struct err *e)
{
    struct response *r = NULL;
    if (!a->answered && !a->again) {
        r = response_new(a->request);
        if (!e)
            e = err_new(STATUS_INTERNAL,
                        "%s: its backend let go of the request without a final response",
                        a->session->model);
        isolate_answer_count_failure(a->session, a->request, STATS_BACKEND);
    }
    if (!a->released)
        request_release(a->request);
    a->released = true;
    if (r)
        response_send(r, RESPONSE_FINAL, e);
    else
        err_free(e);
    request_unref(a->request);
    return r != NULL;
}
