#include "isolate/isolate_flight.h"

#include "base/check.h"
#include "base/mem.h"
#include "infer/request.h"
#include "infer/response.h"
#include "infer/stats.h"
#include "isolate/isolate_answer.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_session.h"

#include <sched.h>
#include <string.h>

#define MOST_TOLD   32768u          /* bytes of numbers in one message; the next tick sends more */
#define LONG_BYTES  ((size_t)65536) /* of a record; longer ones come in several packets */
#define MOST_PARKED 4096u           /* records about one request that wait for an earlier one */

/* A record that arrived before the records that come first. */
struct parked {
    struct parked *next;
    uint64_t place;
    uint64_t kind;
    size_t len;
    uint8_t body[];
};

struct isolate_flight {
    struct isolate_answer answer; /* first member; used by the thread that set busy */
    uint64_t id;
    uint64_t offset; /* place of its inputs in shared memory */
    uint64_t bytes;  /* size of its inputs; 0 = none */
    uint64_t place;  /* place of the next record; guarded by the lock, like all fields below */
    struct parked *parked;
    unsigned parked_count;
    bool busy;          /* a thread works on a record, without the lock */
    bool told;          /* the process was told that it was cancelled */
    time_ns deadline;   /* TIME_NEVER = none, or already answered */
    struct err *doomed; /* fail it with this when it is no longer busy; owned */
};

void isolate_flight_init(struct isolate_flights *f)
{
    mutex_init(&f->lock, MUTEX_RANK_THREAD);
}

void isolate_flight_fini(struct isolate_flights *f)
{
    CHECK(f->count == 0);
    mem_free(f->items);
    mem_free(f->generations);
    mutex_fini(&f->lock);
}

/* The lowest free index. Lock held. */
static uint32_t free_index(struct isolate_flights *f)
{
    while (f->hint < f->cap && f->items[f->hint])
        f->hint++;
    if (f->hint == f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 64;
        f->items = mem_realloc(f->items, cap * sizeof(struct isolate_flight *));
        f->generations = mem_realloc(f->generations, cap * sizeof(*f->generations));
        memset(f->items + f->cap, 0, (cap - f->cap) * sizeof(struct isolate_flight *));
        memset(f->generations + f->cap, 0, (cap - f->cap) * sizeof(*f->generations));
        f->cap = cap;
    }
    return f->hint;
}

uint64_t isolate_flight_add(struct isolate_session *s, struct request *r, uint64_t offset,
                            uint64_t bytes, time_ns now)
{
    struct isolate_flights *f = &s->flights;
    struct isolate_flight *one = MEM_NEW(struct isolate_flight);
    one->answer = (struct isolate_answer){.session = s, .request = request_ref(r)};
    one->offset = offset;
    one->bytes = bytes;
    one->deadline = r->queue_deadline > now ? r->queue_deadline : TIME_NEVER;
    one->busy = true;
    mutex_lock(&f->lock);
    bool closed = f->closed;
    if (!closed) {
        uint32_t index = free_index(f);
        f->items[index] = one;
        one->id = (uint64_t)++f->generations[index] << 32 | index;
        f->count++;
    }
    uint64_t id = one->id;
    mutex_unlock(&f->lock);
    if (!closed)
        return id;
    request_unref(r);
    mem_free(one);
    return 0;
}

/* Finds a request by its number; NULL if it is not in flight. Lock held. */
static struct isolate_flight *isolate_flight_find(const struct isolate_flights *f, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    struct isolate_flight *one = index < f->cap ? f->items[index] : NULL;
    return one && one->id == id ? one : NULL;
}

/* Removes a request from the table. The caller then finishes it without the lock. Lock held. */
static void isolate_flight_forget(struct isolate_flights *f, struct isolate_flight *one)
{
    uint32_t index = (uint32_t)one->id;
    f->items[index] = NULL;
    f->hint = index < f->hint ? index : f->hint;
    f->count--;
}

static void give_inputs(struct isolate_flight *one)
{
    if (one->bytes)
        isolate_session_give(one->answer.session, one->offset, one->bytes);
    one->bytes = 0;
}

static void parked_free(struct isolate_session *s, struct parked *p)
{
    if (p)
        isolate_quota_give(&s->quota, sizeof(*p) + p->len);
    mem_free(p);
}

/* The process has finished with the request. e is taken over; NULL = the request was answered,
 * or should have been. */
static bool isolate_flight_finish(struct isolate_flight *one, struct err *e)
{
    bool answered = isolate_answer_end(&one->answer, e);
    give_inputs(one);
    while (one->parked) {
        struct parked *p = one->parked;
        one->parked = p->next;
        isolate_answer_drop(one->answer.session, p->kind, p->body, p->len);
        parked_free(one->answer.session, p);
    }
    mem_free(one);
    return answered;
}

void isolate_flight_launch(struct isolate_session *s, uint64_t id)
{
    struct isolate_flights *f = &s->flights;
    mutex_lock(&f->lock);
    struct isolate_flight *one = f->items[(uint32_t)id];
    struct err *doomed = one->doomed;
    if (doomed)
        isolate_flight_forget(f, one);
    one->busy = false;
    mutex_unlock(&f->lock);
    if (doomed)
        isolate_flight_finish(one, doomed);
}

/* Keeps a record for later. Returns false if the process makes the server hold too much. Lock
 * held. */
static bool park(struct isolate_flight *one, uint64_t place, uint64_t kind, const void *body,
                 size_t len)
{
    struct isolate_quota *quota = &one->answer.session->quota;
    struct parked *p;
    if (one->parked_count == MOST_PARKED || !isolate_quota_take(quota, sizeof(*p) + len))
        return false;
    p = mem_try_alloc(sizeof(*p) + len, 8);
    if (!p) {
        isolate_quota_give(quota, sizeof(*p) + len);
        return false;
    }
    *p = (struct parked){.next = one->parked, .place = place, .kind = kind, .len = len};
    memcpy(p->body, body, len);
    one->parked = p;
    one->parked_count++;
    return true;
}

/* Takes the parked record whose turn it is; the caller frees it. Lock held. */
static struct parked *unpark(struct isolate_flight *one)
{
    for (struct parked **at = &one->parked; *at; at = &(*at)->next) {
        if ((*at)->place != one->place)
            continue;
        struct parked *p = *at;
        *at = p->next;
        one->parked_count--;
        return p;
    }
    return NULL;
}

/* Handles one record, then the parked ones that waited for it. The flight is busy. */
static bool isolate_flight_work(struct isolate_flights *f, struct isolate_flight *one,
                                uint64_t kind, const void *body, size_t len)
{
    struct parked *p = NULL;
    for (;;) {
        bool ok = isolate_answer_record(&one->answer, kind, body, len);
        if (one->answer.released)
            give_inputs(one);
        parked_free(one->answer.session, p);
        mutex_lock(&f->lock);
        one->place++;
        p = ok && !one->doomed && !one->answer.gone ? unpark(one) : NULL;
        if (one->answer.answered)
            one->deadline = TIME_NEVER;
        struct err *doomed = one->doomed;
        bool over = !p && (doomed || one->answer.gone);
        if (over)
            isolate_flight_forget(f, one);
        else if (!p)
            one->busy = false;
        mutex_unlock(&f->lock);
        if (over)
            isolate_flight_finish(one, doomed);
        if (!p)
            return ok;
        kind = p->kind;
        body = p->body;
        len = p->len;
    }
}

/* Ends a request: too many records about it wait for a record that the process has not sent. */
static void give_up(struct isolate_session *s, uint64_t id)
{
    struct err *e =
        err_busy("%s: what its process says of the request comes out of order, and there is "
                 "no room to keep more than %zu bytes of it; try again later, or raise "
                 "--memory-budget",
                 s->model, s->quota.most);
    isolate_flight_fail(s, id, e);
    err_free(e);
}

bool isolate_flight_record(struct isolate_session *s, uint64_t kind, const void *body, size_t len)
{
    struct isolate_flights *f = &s->flights;
    struct isolate_wire w;
    isolate_wire_read(&w, body, len);
    uint64_t id = isolate_wire_get(&w);
    uint64_t place = isolate_wire_get(&w);
    if (w.bad)
        return false;
    /* OVER: the server gave the request up earlier */
    enum { OVER, MINE, PARKED, CROWDED, BAD } fate = OVER;
    mutex_lock(&f->lock);
    struct isolate_flight *one = isolate_flight_find(f, id);
    if (one && !one->busy && place == one->place) {
        one->busy = true;
        fate = MINE;
    } else if (one && place < one->place) {
        fate = BAD;
    } else if (one && !one->doomed) {
        fate = park(one, place, kind, body, len) ? PARKED : CROWDED;
    }
    mutex_unlock(&f->lock);
    if (fate == MINE)
        return isolate_flight_work(f, one, kind, body, len);
    if (fate == CROWDED)
        give_up(s, id);
    if (len > LONG_BYTES)
        sched_yield(); /* it took a while and is of no use now; loops may wait for this processor */
    return fate == PARKED || (fate != BAD && isolate_answer_drop(s, kind, body, len));
}

void isolate_flight_fail(struct isolate_session *s, uint64_t id, const struct err *e)
{
    struct isolate_flights *f = &s->flights;
    struct err *copy = err_copy(e);
    mutex_lock(&f->lock);
    struct isolate_flight *one = isolate_flight_find(f, id);
    bool busy = one && one->busy;
    if (busy && !one->doomed) {
        one->doomed = copy;
        copy = NULL;
    } else if (one && !busy) {
        isolate_flight_forget(f, one);
    }
    mutex_unlock(&f->lock);
    if (one && !busy)
        isolate_flight_finish(one, copy);
    else
        err_free(copy);
}

uint32_t isolate_flight_fail_all(struct isolate_session *s, const struct err *e)
{
    struct isolate_flights *f = &s->flights;
    struct isolate_flight **mine;
    uint32_t count = 0;
    uint32_t answered = 0;
    mutex_lock(&f->lock);
    f->closed = true;
    mine = mem_alloc((f->count + 1u) * sizeof(struct isolate_flight *));
    for (uint32_t i = 0; i < f->cap; i++) {
        struct isolate_flight *one = f->items[i];
        if (one && one->busy && !one->doomed)
            one->doomed = err_copy(e);
        if (!one || one->busy)
            continue;
        isolate_flight_forget(f, one);
        mine[count++] = one;
    }
    mutex_unlock(&f->lock);
    for (uint32_t i = 0; i < count; i++)
        answered += isolate_flight_finish(mine[i], err_copy(e));
    mem_free(mine);
    return answered;
}

/* Finds a request that has timed out and makes it busy for the caller; NULL if there is none.
 * Lock held. */
static struct isolate_flight *overdue(struct isolate_flights *f, time_ns now)
{
    for (uint32_t i = 0; i < f->cap; i++) {
        struct isolate_flight *one = f->items[i];
        if (!one || one->busy || one->deadline > now)
            continue;
        one->deadline = TIME_NEVER;
        one->busy = true;
        return one;
    }
    return NULL;
}

/* Answers a request that has timed out. The process may continue with it, but its records have
 * no effect. Lock not held, busy. */
static void time_out(struct isolate_session *s, struct isolate_flight *one)
{
    struct isolate_flights *f = &s->flights;
    isolate_answer_now(&one->answer, err_busy("Request timeout expired"));
    /* Records that arrived meanwhile were parked: handle a record without effect, so that they
     * go on. */
    mutex_lock(&f->lock);
    struct parked *p = one->doomed ? NULL : unpark(one);
    struct err *doomed = one->doomed;
    if (!p)
        one->busy = false;
    if (doomed)
        isolate_flight_forget(f, one);
    mutex_unlock(&f->lock);
    if (doomed)
        isolate_flight_finish(one, doomed);
    else if (p)
        isolate_flight_work(f, one, p->kind, p->body, p->len);
    parked_free(s, p);
}

void isolate_flight_tick(struct isolate_session *s, time_ns now, struct strbuf *cancelled)
{
    struct isolate_flights *f = &s->flights;
    struct isolate_flight *one;
    mutex_lock(&f->lock);
    while ((one = overdue(f, now))) {
        mutex_unlock(&f->lock);
        time_out(s, one);
        mutex_lock(&f->lock);
    }
    for (uint32_t i = 0; i < f->cap; i++) {
        one = f->items[i];
        if (!one || one->told || cancelled->len >= MOST_TOLD ||
            !request_is_cancelled(one->answer.request))
            continue;
        one->told = true;
        isolate_wire_put(cancelled, one->id);
    }
    mutex_unlock(&f->lock);
}

uint32_t isolate_flight_count(struct isolate_session *s)
{
    mutex_lock(&s->flights.lock);
    uint32_t count = s->flights.count;
    mutex_unlock(&s->flights.lock);
    return count;
}
