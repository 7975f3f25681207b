#include "isolate/isolate_life.h"

#include "base/log.h"
#include "base/mem.h"
#include "os/packet.h"
#include "os/thread.h"
#include "isolate/isolate_flight.h"
#include "isolate/isolate_limits.h"
#include "isolate/isolate_load.h"
#include "isolate/isolate_log.h"
#include "isolate/isolate_priv.h"
#include "isolate/isolate_records.h"
#include "isolate/isolate_session.h"

#include <limits.h>
#include <string.h>

#define TURN    256u         /* messages read in one turn of the loop */
#define WAIT_NS TIME_MS(500) /* how long orders wait for the next process */
#define SAY_NS  TIME_MS(300) /* how long answers wait to know how the process ended */
/* how long a process that has closed its sockets may take to write a core file */
#define DUMP_NS       TIME_S(2)
#define PAUSE_NS      TIME_MS(100) /* pause before the second start in a row; it doubles */
#define MOST_PAUSE_NS TIME_S(5)

static void after_end(struct isolate *iso);

/* ---- Messages on the control socket and the log */

/* Reads messages from the control socket. Returns false at its end. */
static bool isolate_life_read_control(struct isolate *iso, struct isolate_session *s, unsigned most)
{
    for (unsigned i = 0; i < most; i++) {
        const uint8_t *bytes;
        size_t len;
        enum isolate_frame_result r =
            isolate_frame_receive(&iso->frame, s->control_fd, false, false, &bytes, &len);
        if (r == ISOLATE_FRAME_NONE)
            return true;
        if (r == ISOLATE_FRAME_OK && isolate_records_apply(s, bytes, len, NULL))
            continue;
        if (r != ISOLATE_FRAME_GONE)
            atomic_store_explicit(&s->doomed, true, memory_order_relaxed);
        return false;
    }
    return true;
}

/* Reads a message from the log socket. Returns false at its end. */
static bool read_log(struct isolate *iso, struct isolate_session *s)
{
    char *line = (char *)iso->frame.room;
    if (iso->frame.whole)
        line = mem_alloc(PACKET_MAX_BYTES);
    ssize_t got = 1;
    for (unsigned i = 0; i < TURN && got > 0; i++) {
        got = packet_receive(s->log_fd, line, PACKET_MAX_BYTES, NULL, false);
        if (got > 0)
            isolate_log_relay(&iso->said, iso->model, line, (size_t)got);
    }
    if (line != (char *)iso->frame.room)
        mem_free(line);
    return got > 0 || got == PACKET_NONE || got == PACKET_BAD;
}

static void unwatch_one(struct isolate *iso, struct loop_fd *w)
{
    if (w->fd >= 0)
        loop_del(iso->loop, w);
    w->fd = -1;
}

static void isolate_life_on_control(struct loop_fd *w, uint32_t events)
{
    (void)events;
    struct isolate *iso = LIST_ITEM(w, struct isolate, control);
    struct isolate_session *s = iso->session;
    if (isolate_life_read_control(iso, s, TURN))
        return;
    mutex_lock(&iso->lock);
    bool orderly = iso->orderly && s->process.pidfd >= 0;
    mutex_unlock(&iso->lock);
    if (orderly) /* the process still has to end */
        unwatch_one(iso, w);
    else
        after_end(iso);
}

static void on_log(struct loop_fd *w, uint32_t events)
{
    (void)events;
    struct isolate *iso = LIST_ITEM(w, struct isolate, log);
    if (!read_log(iso, iso->session))
        unwatch_one(iso, w);
}

static void on_process_end(struct loop_fd *w, uint32_t events)
{
    (void)events;
    after_end(LIST_ITEM(w, struct isolate, end));
}

static struct err *watch_one(struct isolate *iso, struct loop_fd *w, int fd,
                             void (*ready)(struct loop_fd *, uint32_t))
{
    *w = (struct loop_fd){.fd = fd, .ready = ready};
    struct err *e = fd >= 0 ? loop_add(iso->loop, w, PACKET_READABLE) : NULL;
    if (e)
        w->fd = -1;
    return e;
}

static struct err *watch(struct isolate *iso, struct isolate_session *s)
{
    iso->log.fd = iso->end.fd = -1;
    struct err *e = watch_one(iso, &iso->control, s->control_fd, isolate_life_on_control);
    if (!e)
        e = watch_one(iso, &iso->log, s->log_fd, on_log);
    if (!e)
        e = watch_one(iso, &iso->end, s->process.pidfd, on_process_end);
    return e;
}

static void unwatch(struct isolate *iso)
{
    unwatch_one(iso, &iso->control);
    unwatch_one(iso, &iso->log);
    unwatch_one(iso, &iso->end);
}

/* ---- Starting */

/* The thread that loads the model in a new process. */
static void reload(void *arg)
{
    struct isolate *iso = arg;
    mutex_lock(&iso->lock);
    struct isolate_session *s = iso->session ? isolate_session_ref(iso->session) : NULL;
    mutex_unlock(&iso->lock);
    bool lost = true;
    struct err *e = s ? isolate_load_all(iso, s, &lost) : NULL;
    if (e) {
        LOG_ERROR("%s: its new process could not load it: %s", iso->model, err_message(e));
        atomic_store(&iso->kill_at, 1);
    }
    bool up = false;
    mutex_lock(&iso->lock);
    if (!e && !lost && iso->session == s && iso->state == ISOLATE_RESTARTING) {
        LIST_EACH (node, &iso->instances) {
            struct isolate_instance *inst = LIST_ITEM(node, struct isolate_instance, node);
            inst->lane = inst->next_lane;
        }
        iso->state = ISOLATE_UP;
        atomic_store(&iso->ready, true);
        up = true;
    }
    iso->reloading = false;
    mutex_cond_broadcast(&iso->changed);
    mutex_unlock(&iso->lock);
    if (up)
        LOG_INFO("%s: its new process %d serves", iso->model, (int)s->process.pid);
    if (e)
        isolate_life_look(iso);
    err_free(e);
    isolate_session_unref(s);
}

static struct err *start_process(struct isolate *iso, enum isolate_state state)
{
    struct isolate_session *s = NULL;
    struct err *e = isolate_session_new(iso->model, iso->program, &iso->settings, &s);
    if (e)
        return e;
    s->stats = iso->stats;
    s->most_rows = iso->most_rows;
    isolate_frame_init(&iso->frame, &s->quota);
    e = watch(iso, s);
    if (e) {
        unwatch(iso);
        spawn_kill(&s->process);
        spawn_reap(&s->process);
        isolate_frame_fini(&iso->frame);
        isolate_session_unref(s);
        return e;
    }
    mutex_lock(&iso->lock);
    iso->session = s;
    iso->state = state;
    iso->orderly = false;
    atomic_store(&iso->kill_at, 0);
    iso->reloading = state == ISOLATE_RESTARTING;
    mutex_cond_broadcast(&iso->changed);
    mutex_unlock(&iso->lock);
    return NULL;
}

/* Plans the next start, after a pause if earlier processes executed nothing. Returns the pause;
 * TIME_NEVER = no start. */
static time_ns plan_restart(struct isolate *iso)
{
    mutex_lock(&iso->lock);
    time_ns pause = TIME_NEVER;
    if (iso->initialized && !iso->stopping && !atomic_load(&iso->retired)) {
        pause = 0;
        for (unsigned i = 1; i < iso->failures && pause < MOST_PAUSE_NS; i++)
            pause = pause ? pause * 2 : PAUSE_NS;
        pause = pause < MOST_PAUSE_NS ? pause : MOST_PAUSE_NS;
    }
    iso->wait_until = pause ? 0 : clock_now_ns() + WAIT_NS;
    mutex_unlock(&iso->lock);
    if (pause != TIME_NEVER)
        loop_timer_set(iso->loop, &iso->restart, clock_now_ns() + pause);
    return pause;
}

static void failed_start(struct isolate *iso, struct err *e)
{
    mutex_lock(&iso->lock);
    iso->failures++;
    struct strbuf end = STRBUF_INIT;
    strbuf_printf(&end, "its process could not be started: %s", err_message(e));
    mem_free(iso->last_end);
    iso->last_end = strbuf_take(&end);
    iso->reloading = false;
    mutex_cond_broadcast(&iso->changed);
    mutex_unlock(&iso->lock);
    if (iso->initialized) /* otherwise the load reports the error */
        LOG_ERROR("%s: its process could not be started: %s", iso->model, err_message(e));
    err_free(e);
    plan_restart(iso);
}

static void on_restart(struct loop_timer *t)
{
    struct isolate *iso = LIST_ITEM(t, struct isolate, restart);
    mutex_lock(&iso->lock);
    bool wanted = !iso->stopping && !atomic_load(&iso->retired);
    iso->wait_until = clock_now_ns() + WAIT_NS;
    mutex_unlock(&iso->lock);
    if (!wanted)
        return;
    thread_join(iso->restarter); /* the process that it loaded has ended */
    iso->restarter = NULL;
    struct err *e = start_process(iso, ISOLATE_RESTARTING);
    if (!e) {
        e = thread_start("isolate-load", reload, iso, &iso->restarter);
        if (e)
            spawn_kill(&iso->session->process);
    }
    if (e)
        failed_start(iso, e);
}

/* ---- The end of a process */

/* Ends what is left of the process and returns a text about how it ended. ret_well: it ended as
 * if it had been told to. */
static char *bury(struct isolate *iso, struct isolate_session *s, struct err **ret_error,
                  bool *ret_well)
{
    bool doomed = atomic_load_explicit(&s->doomed, memory_order_relaxed);
    if (doomed || atomic_load(&iso->kill_at))
        spawn_kill(&s->process);
    bool ended = spawn_wait(&s->process, clock_now_ns() + SAY_NS);
    struct err *crashed =
        err_new(STATUS_INTERNAL, "%s: its process crashed while it had the request", iso->model);
    if (!ended) /* answers should not wait for a core file to be written */
        isolate_flight_fail_all(s, crashed);
    err_free(crashed);
    if (!ended && !spawn_wait(&s->process, clock_now_ns() + DUMP_NS))
        spawn_kill(&s->process);
    pid_t pid = s->process.pid;
    struct strbuf sb = STRBUF_INIT;
    strbuf_printf(&sb, "its process %d ended: ", (int)pid);
    int status = spawn_reap(&s->process);
    *ret_well = !doomed && (status == 0 || status == -1); /* -1: unknown */
    spawn_tell(&sb, status);
    if (doomed)
        strbuf_puts(&sb, ", after it broke the protocol");
    *ret_error =
        err_new(STATUS_INTERNAL, "%s: %s, while it had the request", iso->model, strbuf_str(&sb));
    return strbuf_take(&sb);
}

static void tell_end(struct isolate *iso, const char *end, bool well, uint32_t lost, time_ns pause)
{
    mutex_lock(&iso->lock);
    bool orderly = iso->orderly || iso->stopping;
    mutex_unlock(&iso->lock);
    if (orderly && well)
        LOG_VERBOSE(1, "%s: %s", iso->model, end);
    else if (pause == TIME_NEVER)
        LOG_ERROR("%s: %s; %u requests were lost", iso->model, end, lost);
    else
        LOG_ERROR("%s: %s; %u requests were lost; the next one is started in %.1f s", iso->model,
                  end, lost, (double)pause / 1e9);
}

static void after_end(struct isolate *iso)
{
    struct isolate_session *s = iso->session;
    atomic_store(&iso->ready, false);
    isolate_session_end(s);
    /* messages sent before the end still count */
    (void)isolate_life_read_control(iso, s, UINT_MAX);
    unwatch_one(iso, &iso->end); /* reaping closes the descriptor */
    struct err *e;
    bool well;
    char *end = bury(iso, s, &e, &well);
    for (unsigned i = 0; i < TURN && read_log(iso, s); i++)
        continue;
    unwatch(iso);
    uint32_t lost = isolate_flight_fail_all(s, e);
    err_free(e);
    mutex_lock(&iso->lock);
    iso->failures =
        atomic_load_explicit(&s->executed, memory_order_relaxed) ? 1 : iso->failures + 1;
    iso->state = ISOLATE_DOWN;
    iso->session = NULL;
    mem_free(iso->last_end);
    iso->last_end = mem_strdup(end);
    LIST_EACH (node, &iso->instances)
        LIST_ITEM(node, struct isolate_instance, node)->lane = NULL;
    mutex_unlock(&iso->lock);
    time_ns pause = plan_restart(iso);
    mutex_lock(&iso->lock);
    mutex_cond_broadcast(&iso->changed);
    mutex_unlock(&iso->lock);
    tell_end(iso, end, well, lost, pause);
    mem_free(end);
    isolate_frame_fini(&iso->frame); /* the process may have ended in the middle of a message */
    isolate_session_unref(s);
}

/* ---- Time limits */

static void on_tick(struct loop_timer *t)
{
    struct isolate *iso = LIST_ITEM(t, struct isolate, tick);
    struct isolate_session *s = iso->session;
    if (!s) {
        atomic_store(&iso->ticking, false);
        return;
    }
    time_ns now = clock_now_ns();
    if (isolate_limits_over(iso, s, now)) {
        spawn_kill(&s->process);
        loop_timer_set(iso->loop, t, now + ISOLATE_LIMITS_TICK);
        if (s->process.pidfd < 0)
            after_end(iso);
        return;
    }
    time_ns next = isolate_limits_look(iso, s, now);
    if (next == TIME_NEVER) {
        atomic_store(&iso->ticking, false);
        /* If a request came after the count was read, it found `ticking` still set, so check
         * again. */
        if (isolate_flight_count(s) && !atomic_exchange(&iso->ticking, true))
            next = now + ISOLATE_LIMITS_TICK;
    }
    if (next != TIME_NEVER)
        loop_timer_set(iso->loop, t, next);
}

static void tick_arrived(struct mail *m)
{
    struct isolate *iso = LIST_ITEM(m, struct isolate, tick_mail);
    atomic_store(&iso->tick_posted, false);
    loop_timer_set(iso->loop, &iso->tick, 0);
}

void isolate_life_look(struct isolate *iso)
{
    atomic_store(&iso->ticking, true);
    if (!atomic_exchange(&iso->tick_posted, true))
        loop_post(iso->loop, &iso->tick_mail, &iso->tick_mail);
}

/* ---- The supervisor */

static void start_arrived(struct mail *m)
{
    struct isolate *iso = LIST_ITEM(m, struct isolate, start_mail);
    struct err *e = start_process(iso, ISOLATE_LOADING);
    if (e)
        failed_start(iso, e);
}

static void supervise(void *arg)
{
    struct isolate *iso = arg;
    loop_run(iso->loop);
    thread_join(iso->restarter);
    iso->restarter = NULL;
}

struct err *isolate_life_start(struct isolate *iso)
{
    iso->tick = (struct loop_timer)LOOP_TIMER_INIT(on_tick);
    iso->restart = (struct loop_timer)LOOP_TIMER_INIT(on_restart);
    iso->start_mail.deliver = start_arrived;
    iso->tick_mail.deliver = tick_arrived;
    iso->wait_until = TIME_NEVER;
    struct err *e = loop_new(&iso->loop);
    if (!e)
        e = thread_start("isolate", supervise, iso, &iso->supervisor);
    if (e)
        return e;
    loop_post(iso->loop, &iso->start_mail, &iso->start_mail);
    mutex_lock(&iso->lock);
    while (!iso->session && !iso->failures)
        mutex_cond_wait(&iso->changed, &iso->lock);
    if (!iso->session)
        e = err_new(STATUS_INTERNAL, "%s", iso->last_end);
    mutex_unlock(&iso->lock);
    return e;
}

void isolate_life_stop(struct isolate *iso)
{
    if (iso->supervisor) {
        mutex_lock(&iso->lock);
        while (iso->session || iso->reloading)
            mutex_cond_wait(&iso->changed, &iso->lock);
        mutex_unlock(&iso->lock);
        loop_stop(iso->loop);
        thread_join(iso->supervisor);
    }
    loop_free(iso->loop);
    isolate_frame_fini(&iso->frame);
}

struct err *isolate_life_acquire(struct isolate *iso, const struct isolate_instance *inst,
                                 struct isolate_session **ret, struct isolate_lane **ret_lane)
{
    struct err *e = NULL;
    mutex_lock(&iso->lock);
    for (;;) {
        bool there = iso->session && (iso->state == ISOLATE_UP || iso->state == ISOLATE_LOADING);
        if (there && (!inst || inst->lane))
            break;
        bool none_comes = iso->stopping || !iso->initialized || atomic_load(&iso->retired);
        if (none_comes || clock_now_ns() >= iso->wait_until) {
            e = err_new(STATUS_UNAVAILABLE, "%s is not ready: %s%s", iso->model, iso->last_end,
                        none_comes ? "" : "; another one is being started");
            err_retry_after(e, none_comes ? 0 : ERR_RETRY_LATER);
            break;
        }
        mutex_cond_wait_until(&iso->changed, &iso->lock, iso->wait_until);
    }
    if (!e) {
        *ret = isolate_session_ref(iso->session);
        if (inst)
            *ret_lane = inst->lane;
    }
    mutex_unlock(&iso->lock);
    return e;
}

struct err *isolate_life_ended(struct isolate *iso, struct isolate_session *s, const char *doing)
{
    mutex_lock(&iso->lock);
    while (iso->session == s)
        mutex_cond_wait(&iso->changed, &iso->lock);
    struct err *e = err_new(STATUS_INTERNAL, "%s: %s, %s", iso->model, iso->last_end, doing);
    mutex_unlock(&iso->lock);
    return e;
}

void isolate_life_setup_begin(struct isolate *iso)
{
    mutex_lock(&iso->lock);
    while (iso->setup_busy)
        mutex_cond_wait(&iso->changed, &iso->lock);
    iso->setup_busy = true;
    mutex_unlock(&iso->lock);
}

void isolate_life_setup_end(struct isolate *iso)
{
    mutex_lock(&iso->lock);
    iso->setup_busy = false;
    mutex_cond_broadcast(&iso->changed);
    mutex_unlock(&iso->lock);
}
