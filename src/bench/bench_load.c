#include "bench/bench_load.h"

#include "base/mem.h"
#include "bench/bench_wire.h"
#include "os/loop.h"
#include "os/thread.h"
#include "os/ticker.h"

#include <string.h>

#define SEQUENCE_LENGTH 20u /* on average, where neither an option nor the data says another */

/* One request at a time. */
struct bench_slot {
    struct bench_call call;
    struct bench_load *load;
    struct bench_lane *lane;
    struct list idle; /* in load->idle while it has nothing to do */
    struct strbuf head;
    time_ns due; /* when it should have been sent */
    struct bench_place place;
    uint32_t left;                 /* requests of its sequence that come after this one */
    const struct bench_list *list; /* that its sequence sends; NULL = the data has none */
    uint32_t sent;                 /* requests of its sequence so far */
};

struct bench_load {
    struct bench_load_settings s;
    const struct bench_options *o;
    struct bench_slot **slots;
    uint32_t slot_count;
    struct list idle;
    uint32_t under_way;
    uint32_t step;     /* the next one of the data */
    bool sending;      /* answers are followed by new requests */
    bool counting;     /* a window is open */
    struct err *error; /* the first; ends the level */

    struct ticker ticks; /* with a request rate: due with the next request */
    double gap_ns;       /* between two requests on average; 0 = no request rate */
    double next_ns;      /* when the next one is due */
    uint64_t random;
    uint64_t next_sequence; /* the correlation id of the next one */
    uint32_t next_list;     /* that the next sequence sends */

    /* late: the statistics are, or at the end of a level the last answers */
    struct loop_timer window_end, late;
    struct bench_lane *lane; /* for statistics */
    struct bench_call asked;
    struct strbuf question;
    struct bench_window *windows[BENCH_WINDOWS + 1]; /* the last ones; [trial % 4] is open */
    struct bench_statistics statistics;              /* the newest */
    uint32_t trial;
    uint64_t cpu_ns; /* of this thread when the window began */
    bool steady;
};

static struct bench_window *bench_open_window(struct bench_load *l)
{
    return l->windows[l->trial % (BENCH_WINDOWS + 1)];
}

/* From 0 up to 1. */
static double load_random(struct bench_load *l)
{
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(l->random >> 11) / 9007199254740992.0;
}

static uint32_t random_length(struct bench_load *l)
{
    double length = l->o->sequence_length ? l->o->sequence_length : SEQUENCE_LENGTH;
    length *= 1 + (2 * load_random(l) - 1) * l->o->sequence_variation / 100;
    return length < 1 ? 1 : (uint32_t)(length + 0.5);
}

/* The next request of the slot's sequence, or the first of another; the last one when a level
 * ends, so that the server keeps none open. */
static void slot_take_place(struct bench_slot *s)
{
    struct bench_load *l = s->load;
    bool open = s->left > 0;
    if (!open) {
        uint32_t lists = l->s.data->list_count;
        s->list = lists ? &l->s.data->lists[l->next_list++ % lists] : NULL;
        s->left = s->list && !l->o->sequence_length ? s->list->count : random_length(l);
        s->sent = 0;
        s->place.sequence = l->next_sequence++;
    }
    s->left = l->sending ? s->left - 1 : 0;
    s->place.start = !open;
    s->place.end = s->left == 0;
}

/* The number of the step that the slot sends next: the next of its sequence's list, which begins
 * anew at its end, or of all. */
static uint32_t slot_step(struct bench_slot *s)
{
    struct bench_load *l = s->load;
    if (l->s.sequences)
        slot_take_place(s);
    if (l->s.sequences && s->list)
        return s->list->first + s->sent++ % s->list->count;
    uint32_t step = l->step;
    l->step = step + 1 == l->s.data->step_count ? 0 : step + 1;
    return step;
}

static void slot_send(struct bench_slot *s, time_ns due)
{
    struct bench_load *l = s->load;
    const struct bench_request *r = &l->s.requests[slot_step(s)];
    s->place.final_flag = l->s.decoupled;
    if (!s->head.len || l->s.data->step_count > 1 || l->s.sequences) {
        s->head.len = 0;
        bench_request_head(l->o, r, &s->place, &s->head);
    }
    s->call.pieces[0] = (struct iovec){s->head.data, s->head.len};
    s->call.pieces[1] = (struct iovec){r->rest.data, r->rest.len};
    s->call.begun = clock_now_ns();
    s->due = due ? due : s->call.begun;
    l->under_way++;
    s->lane->send(s->lane, &s->call);
}

/* Sends the last request of each sequence that is open in a slot with nothing to do. */
static void end_sequences(struct bench_load *l)
{
    for (uint32_t i = 0; i < l->slot_count && !l->error; i++) {
        struct bench_slot *s = l->slots[i];
        if (!s->left || list_empty(&s->idle))
            continue;
        list_remove(&s->idle);
        slot_send(s, 0);
    }
}

/* Begins the end of a level: with the first error, or when enough was measured. */
static void stop_level(struct bench_load *l, struct err *e)
{
    if (e && l->error)
        err_free(e);
    else if (e)
        l->error = e;
    l->counting = false;
    loop_timer_clear(l->s.loop, &l->window_end);
    if (l->sending)
        loop_timer_set(l->s.loop, &l->late, clock_now_ns() + BENCH_WIRE_ANSWER_NS);
    l->sending = false;
    end_sequences(l);
    if (!l->under_way)
        loop_stop(l->s.loop);
}

/* Exponentially distributed, mean 1. Von Neumann's method: it only compares, so the server's
 * library needs no libm, which would be 300 KiB in every server. */
static double exponential_random(struct bench_load *l)
{
    for (double whole = 0;; whole++) {
        double first = load_random(l), last = first, next;
        unsigned run = 1;
        while ((next = load_random(l)) < last) {
            last = next;
            run++;
        }
        if (run % 2)
            return whole + first;
    }
}

/* Sends what is due, as long as there are slots. A request that finds none waits: next_ns stays in
 * the past, and the time that it waits counts. */
static void send_due(struct bench_load *l)
{
    double now = (double)clock_now_ns();
    struct list *node;
    while (l->sending && l->next_ns <= now && (node = list_pop(&l->idle))) {
        slot_send(LIST_ITEM(node, struct bench_slot, idle), (time_ns)l->next_ns);
        l->next_ns += l->gap_ns * (l->o->poisson ? exponential_random(l) : 1);
    }
    if (!l->sending || l->next_ns <= now)
        return;
    ticker_set(&l->ticks, (time_ns)l->next_ns);
}

static void bench_on_tick(struct ticker *t)
{
    send_due(LIST_ITEM(t, struct bench_load, ticks));
}

static void slot_count(const struct bench_slot *s, time_ns now)
{
    struct bench_load *l = s->load;
    struct bench_window *w = bench_open_window(l);
    const struct bench_call *c = &s->call;
    bench_histogram_add(&w->latencies, now - s->due);
    if (c->sent > c->begun)
        w->send_ns += c->sent - c->begun;
    if (c->came && now > c->came)
        w->receive_ns += now - c->came;
    w->late += c->begun > s->due + TIME_MS(1);
    w->responses += c->responses;
}

static void slot_done(struct bench_call *c, struct err *e)
{
    struct bench_slot *s = LIST_ITEM(c, struct bench_slot, call);
    struct bench_load *l = s->load;
    l->under_way--;
    if (e) {
        list_append(&l->idle, &s->idle);
        stop_level(l, e);
        return;
    }
    if (l->counting)
        slot_count(s, clock_now_ns());
    if (l->sending ? l->gap_ns <= 0 : s->left && !l->error) {
        slot_send(s, 0);
        return;
    }
    list_append(&l->idle, &s->idle);
    if (l->sending)
        send_due(l);
    else if (!l->under_way)
        loop_stop(l->s.loop);
}

static void begin_window(struct bench_load *l)
{
    struct thread_usage usage;
    struct bench_window *w = bench_open_window(l);
    memset(w, 0, sizeof(*w));
    thread_usage(&usage);
    l->cpu_ns = usage.cpu_ns;
    w->before = l->statistics;
    w->begun = clock_now_ns();
    l->counting = true;
    loop_timer_set(l->s.loop, &l->window_end, w->begun + TIME_MS(l->o->interval_ms));
}

/* The last BENCH_WINDOWS, oldest first. */
static uint32_t last_windows(const struct bench_load *l, const struct bench_window **ret)
{
    uint32_t count = l->trial < BENCH_WINDOWS ? l->trial : BENCH_WINDOWS;
    for (uint32_t i = 0; i < count; i++)
        ret[i] = l->windows[(l->trial - count + i) % (BENCH_WINDOWS + 1)];
    return count;
}

/* A window has ended, and the server's statistics are there if it has any. */
static void judge_window(struct bench_load *l)
{
    const struct bench_window *last[BENCH_WINDOWS];
    struct bench_window *w = bench_open_window(l);
    w->after = l->statistics;
    w->server = bench_model_since(&w->before, &w->after);
    l->trial++;
    if (l->s.progress)
        l->s.progress(l->s.arg, l->gap_ns > 0 ? 1e9 / l->gap_ns : l->slot_count, l->trial, w);
    if (last_windows(l, last) == BENCH_WINDOWS)
        l->steady = bench_window_steady(last, l->o->percentile, l->o->stability);
    if (l->steady || l->trial >= l->o->max_trials)
        stop_level(l, NULL);
    else
        begin_window(l);
}

static void statistics_done(struct bench_call *c, struct err *e)
{
    struct bench_load *l = LIST_ITEM(c, struct bench_load, asked);
    l->under_way--;
    if (l->sending)
        loop_timer_clear(l->s.loop, &l->late);
    if (!e)
        e = bench_model_statistics(l->o->protocol, c->answer.data, c->answer.len, &l->statistics);
    if (e)
        stop_level(l, err_wrap(e, "the model's statistics"));
    else if (l->sending)
        judge_window(l);
    else if (!l->under_way)
        loop_stop(l->s.loop);
}

static void bench_on_window_end(struct loop_timer *t)
{
    struct bench_load *l = LIST_ITEM(t, struct bench_load, window_end);
    struct bench_window *w = bench_open_window(l);
    struct thread_usage usage;
    w->ended = clock_now_ns();
    l->counting = false;
    thread_usage(&usage);
    w->cpu_ns = usage.cpu_ns - l->cpu_ns;
    if (!l->s.statistics) {
        judge_window(l);
        return;
    }
    l->under_way++;
    loop_timer_set(l->s.loop, &l->late, clock_now_ns() + BENCH_WIRE_ANSWER_NS);
    l->lane->send(l->lane, &l->asked);
}

/* The level ends with what is under way. */
static void bench_on_late(struct loop_timer *t)
{
    struct bench_load *l = LIST_ITEM(t, struct bench_load, late);
    if (l->sending)
        l->error = err_wrap(bench_wire_late(), "the model's statistics");
    l->sending = false;
    if (!l->error)
        l->error =
            err_new(STATUS_UNAVAILABLE, "%u requests had no answer after 30 seconds", l->under_way);
    loop_stop(l->s.loop);
}

static struct err *slot_new(struct bench_load *l)
{
    struct bench_slot *s = MEM_NEW(struct bench_slot);
    enum bench_lane_kind kind = l->o->streaming ? BENCH_LANE_STREAM : BENCH_LANE_UNARY;
    kind = l->s.decoupled ? BENCH_LANE_DECOUPLED : kind;
    struct err *e = bench_wire_lane(l->s.wire, kind, &s->lane);
    if (e) {
        mem_free(s);
        return e;
    }
    s->load = l;
    s->call.path = "/inference.GRPCInferenceService/ModelInfer";
    s->call.done = slot_done;
    list_init(&s->idle);
    list_append(&l->idle, &s->idle);
    l->slots = mem_realloc(l->slots, (l->slot_count + 1) * sizeof(struct bench_slot *));
    l->slots[l->slot_count++] = s;
    return NULL;
}

static void bench_slot_free(struct bench_slot *s)
{
    s->lane->free(s->lane);
    strbuf_fini(&s->head);
    strbuf_fini(&s->call.answer);
    mem_free(s);
}

struct err *bench_load_new(const struct bench_load_settings *s, struct bench_load **ret)
{
    struct bench_load *l = MEM_NEW(struct bench_load);
    l->s = *s;
    l->o = s->options;
    l->random = 1;
    l->next_sequence = s->options->sequence_first;
    l->window_end = (struct loop_timer)LOOP_TIMER_INIT(bench_on_window_end);
    l->late = (struct loop_timer)LOOP_TIMER_INIT(bench_on_late);
    l->asked.done = statistics_done;
    l->asked.keep = true;
    list_init(&l->idle);
    for (uint32_t i = 0; i <= BENCH_WINDOWS; i++)
        l->windows[i] = MEM_NEW(struct bench_window);
    bench_model_ask(l->o, BENCH_STATISTICS, &l->asked.path, &l->question);
    l->asked.pieces[0] = (struct iovec){l->question.data, l->question.len};
    struct err *e = ticker_open(&l->ticks, s->loop, bench_on_tick);
    if (!e)
        e = bench_wire_lane(s->wire, BENCH_LANE_UNARY, &l->lane);
    if (e)
        bench_load_free(l);
    else
        *ret = l;
    return e;
}

void bench_load_free(struct bench_load *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->slot_count; i++)
        bench_slot_free(l->slots[i]);
    mem_free(l->slots);
    for (uint32_t i = 0; i <= BENCH_WINDOWS; i++)
        mem_free(l->windows[i]);
    if (l->lane)
        l->lane->free(l->lane);
    strbuf_fini(&l->question);
    strbuf_fini(&l->asked.answer);
    ticker_close(&l->ticks);
    err_free(l->error);
    mem_free(l);
}

/* Opens the lanes of a level, and asks for the statistics before it. */
static struct err *prepare_level(struct bench_load *l, double level)
{
    uint32_t slots = (uint32_t)level;
    if (l->o->rate.given)
        slots = l->s.sequences ? l->o->sequence_count : l->o->slots;
    struct err *e = NULL;
    while (!e && l->slot_count < slots)
        e = slot_new(l);
    if (e || !l->s.statistics)
        return e;
    e = bench_wire_ask(l->s.wire, l->lane, &l->asked);
    l->asked.done = statistics_done;
    if (!e)
        e = bench_model_statistics(l->o->protocol, l->asked.answer.data, l->asked.answer.len,
                                   &l->statistics);
    return e;
}

void bench_load_stop(struct bench_load *l)
{
    if (l->sending)
        stop_level(l, NULL);
    else if (!l->under_way)
        loop_stop(l->s.loop); /* it asks for the statistics before the level */
}

struct err *bench_load_measure(struct bench_load *l, double level, struct bench_result *ret)
{
    const struct bench_window *last[BENCH_WINDOWS];
    struct err *e = prepare_level(l, level);
    if (e)
        return e;
    l->trial = 0;
    l->steady = false;
    l->sending = true;
    l->gap_ns = l->o->rate.given ? 1e9 / level : 0;
    begin_window(l);
    if (l->gap_ns > 0) {
        l->next_ns = (double)clock_now_ns();
        send_due(l);
    } else {
        struct list *node;
        while (l->sending && (node = list_pop(&l->idle)))
            slot_send(LIST_ITEM(node, struct bench_slot, idle), 0);
    }
    loop_run(l->s.loop);
    loop_timer_clear(l->s.loop, &l->late);
    e = l->error;
    l->error = NULL;
    if (!e && !l->trial)
        e = err_new(STATUS_CANCELLED, "ended before a window was over");
    if (e)
        return e;
    ret->level = level;
    ret->steady = l->steady;
    ret->trials = l->trial;
    uint32_t count = last_windows(l, last);
    bench_window_merge(last, count, &ret->measured);
    return NULL;
}
